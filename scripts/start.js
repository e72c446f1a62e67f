// `npm start`: installs what it needs and starts the playground: a cluster on loopback, with kpng proxying a demo Service.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { build, install, root } from './steps.js'

install()
build()
const args = [join(root, 'cli', 'bin', 'kpng.js'), 'playground', ...process.argv.slice(2)]
const playground = spawn(process.execPath, args, { stdio: 'inherit' })
// Ctrl-C reaches the playground from the terminal itself; twice would mean "at once".
process.on('SIGINT', () => {})
process.on('SIGTERM', () => playground.kill('SIGTERM'))
playground.on('exit', (code) => process.exit(code ?? 1))
