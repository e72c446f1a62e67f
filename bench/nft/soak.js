// Whether memory stays flat: many changes, one after the other, from an API server (the playground) to the kernel. Prints the resident
// set of kpng after each tenth of them. Needs root, nft and ip.
//   node bench/nft/soak.js [--services 1000] [--endpoints 10] [--changes 100000] [--rate 1000] [--rest 20000] [--kpng <command>]
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { cpuMs, message, residentMb, sleep } from '../core/process.js'

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '1000' },
    endpoints: { type: 'string', default: '10' },
    changes: { type: 'string', default: '100000' },
    rate: { type: 'string', default: '1000' },
    rest: { type: 'string', default: '20000' },
    kpng: { type: 'string' },
  },
})
const [services, changes, rate] = [values.services, values.changes, values.rate].map(Number)
const form = values.kpng ?? `${process.execPath} ${fileURLToPath(new URL('../../cli/bin/kpng.js', import.meta.url))}`
const namespace = `kpng-soak-${process.pid}`
const ip = (...args) => spawnSync('ip', args, { stdio: 'inherit' })
const inside = (command, args, stdio) => spawn('ip', ['netns', 'exec', namespace, command, ...args], { stdio })

ip('netns', 'add', namespace)
ip('-n', namespace, 'link', 'set', 'lo', 'up')
const children = []
try {
  const serverArgs = [fileURLToPath(new URL('cluster-server.js', import.meta.url)), values.services, values.endpoints]
  const server = inside(process.execPath, serverArgs, ['ignore', 'inherit', 'inherit', 'ipc'])
  children.push(server)
  const { kubeconfig } = await message(server, 'ready')
  const flags = '--node-name bench --conntrack-max-per-core 0 --conntrack-min 0'
  const [command, ...args] = `${form} kube --kubeconfig ${kubeconfig} to-local to-nft ${flags}`.split(' ')
  const output = process.env.BENCH_LOG ? 'inherit' : 'ignore'
  const kpng = inside(command, args, ['ignore', output, output])
  children.push(kpng)
  server.send({ waitSynced: true })
  await message(server, 'synced')
  const atSync = residentMb(kpng.pid)
  await sleep(Number(values.rest))
  console.log(`RSS at the first sync ${atSync} MB, after a rest ${residentMb(kpng.pid)} MB`)
  console.log('| changes | RSS MB | CPU ms per change |\n|---|---|---|')
  let answered = 0
  server.on('message', (received) => {
    if ('changed' in received) answered++
  })
  const part = Math.ceil(changes / 10)
  for (let sent = 0; sent < changes; ) {
    const cpu = cpuMs(kpng.pid)
    const until = Math.min(changes, sent + part)
    const before = sent
    while (sent < until) {
      const began = performance.now()
      for (let index = 0; index < rate / 20 && sent < until; index++) server.send({ change: sent++ % services })
      await sleep(Math.max(0, 50 - (performance.now() - began)))
      // Never more than a second ahead of the API server.
      while (sent - answered > rate) await sleep(10)
    }
    while (answered < sent) await sleep(10)
    await sleep(1000)
    const perChange = (cpuMs(kpng.pid) - cpu) / (sent - before)
    console.log(`| ${sent} | ${residentMb(kpng.pid)} | ${perChange.toFixed(2)} |`)
  }
} finally {
  for (const child of children.reverse()) {
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
  ip('netns', 'del', namespace)
}
