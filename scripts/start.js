// `npm start`: installs what it needs and serves a sample cluster.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { build, install, root } from './steps.js'

install()
build()
console.log(`
kpng serves examples/state.yaml, a small cluster of two nodes, on 127.0.0.1:12090. In another terminal:

  npx kpng-json --node-name vm-001        what node vm-001 should do, as JSON
  npm run example -- printer              a proxier in ten lines
  edit examples/state.yaml                and see the change arrive

Ctrl-C stops it.
`)
const args = [join(root, 'cli', 'bin', 'kpng.js'), 'file', '-i', join(root, 'examples', 'state.yaml'), 'to-api', '-v', '1']
const server = spawn(process.execPath, args, { stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => server.kill(signal))
server.on('exit', (code) => process.exit(code ?? 1))
