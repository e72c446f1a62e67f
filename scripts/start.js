// `npm start`: installs what it needs and starts the playground: a cluster on loopback, with kpng proxying a demo Service.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { build, install, root } from './steps.js'

install()
build()
const args = [join(root, 'cli', 'bin', 'kpng.js'), 'playground', ...process.argv.slice(2)]
const playground = spawn(process.execPath, args, { stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => playground.kill(signal))
playground.on('exit', (code) => process.exit(code ?? 1))
