// V8's code cache for a bundle: made by running what users run, with the Node that runs this script. Another Node, or one with
// other V8 flags, makes its own where it can write to the folder.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** How long a command may take before something must be wrong. */
const limitMs = 60_000

/** Writes the cache beside `kpng.cjs` in a folder. */
export async function makeCodeCache(folder) {
  const kpng = join(folder, 'kpng.cjs')
  const temporary = mkdtempSync(join(tmpdir(), 'kpng-code-cache-'))
  const environment = { RUNTIME_DIRECTORY: temporary, STATE_DIRECTORY: temporary }
  const warmUp = (...args) => run(kpng, args, { ...environment, KPNG_CODE_CACHE: 'always' }).ended
  const kubeconfig = join(temporary, 'kubeconfig')
  const args = ['playground', '--demo=false', '--kubeconfig', kubeconfig, '--listen', `unix://${temporary}/api`]
  const playground = run(kpng, args, { ...environment, KPNG_CODE_CACHE: 'never' })
  try {
    await playground.says('In another terminal')
    await warmUp('--help')
    const source = ['kube', '--kubeconfig', kubeconfig, 'to-local', '--once', '--node-name', 'playground']
    const noPorts = ['--healthz-bind-address', '', '--metrics-bind-address', '']
    // Each adds what it compiled to the cache of the one before.
    await warmUp(...source, 'to-nft', '--dry-run')
    await warmUp(...source, 'to-userspacelin', '--capture', 'none', ...noPorts)
  } finally {
    playground.child.kill('SIGTERM')
    await playground.ended.catch(() => {})
    rmSync(temporary, { recursive: true, force: true })
  }
}

function run(program, args, environment) {
  const child = spawn(process.execPath, [program, ...args], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: limitMs,
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += chunk))
  const failed = () => new Error(`kpng ${args.join(' ')} failed, so there is no code cache. It said:\n${said}`)
  const ended = once(child, 'close').then(([code]) => {
    if (code !== 0) throw failed()
  })
  ended.catch(() => {})
  const says = (text) =>
    Promise.race([
      ended.then(() => Promise.reject(failed())),
      new Promise((resolve) => child.stdout.on('data', () => said.includes(text) && resolve())),
    ])
  return { child, ended, says }
}
