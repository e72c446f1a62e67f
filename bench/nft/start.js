// From exec to all rules in the kernel, for several forms of kpng in turns: with one API server (the playground) and empty tables each
// time. Time and CPU to the first sync, memory then and after a rest. Needs root, nft and ip.
//   node bench/nft/start.js [--services 1000,5000] [--endpoints 10] [--runs 5] [--rest 3000] [--kpng <command> …] [--peer <path>]
// Each --kpng is a command line that starts a kpng: `--kpng 'node /tmp/bundle/kpng.cjs' --kpng 'node cli/bin/kpng.js'`.
// --peer is the path of a kube-proxy, which takes its turn too, in nftables mode; the first kpng is then compared with it.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { cpuMs, message, residentMb, sleep } from '../core/process.js'
import { kubeProxyArgs } from './kube-proxy.js'

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '1000,5000' },
    endpoints: { type: 'string', default: '10' },
    runs: { type: 'string', default: '5' },
    rest: { type: 'string', default: '3000' },
    kpng: { type: 'string', multiple: true },
    peer: { type: 'string' },
  },
})
const checkout = fileURLToPath(new URL('../../cli/bin/kpng.js', import.meta.url))
const flags = '--node-name bench --conntrack-max-per-core 0 --conntrack-min 0'
const forms = (values.kpng ?? [`${process.execPath} ${checkout}`]).map((form) => ({
  name: form,
  command: (kubeconfig) => `${form} kube --kubeconfig ${kubeconfig} to-local to-nft ${flags}`.split(' '),
}))
if (values.peer)
  forms.push({ name: 'kube-proxy', command: (kubeconfig) => [values.peer, ...kubeProxyArgs('nftables', kubeconfig)] })
const namespace = `kpng-start-${process.pid}`
const ip = (...args) => spawnSync('ip', args, { stdio: 'inherit' })
const inside = (command, args, stdio) => spawn('ip', ['netns', 'exec', namespace, command, ...args], { stdio })

// What was started, and the namespace, go with the process, however that ends.
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    const { stdout } = spawnSync('ip', ['netns', 'pids', namespace], { encoding: 'utf8' })
    for (const pid of stdout.split('\n').filter(Boolean)) process.kill(Number(pid))
    ip('netns', 'del', namespace)
    process.exit(1)
  })
}

async function measure(form, server, kubeconfig) {
  spawnSync('ip', ['netns', 'exec', namespace, 'nft', 'flush', 'ruleset'])
  const [command, ...args] = form.command(kubeconfig)
  const output = process.env.BENCH_LOG ? 'inherit' : 'ignore'
  const started = performance.timeOrigin + performance.now()
  const child = inside(command, args, ['ignore', output, output])
  const ended = once(child, 'exit')
  server.send({ waitSynced: true })
  const { synced } = await Promise.race([message(server, 'synced'), ended.then(() => ({ synced: Number.NaN }))])
  if (Number.isNaN(synced))
    throw new Error(`"${form.name}" ended before its first sync. BENCH_LOG=1 shows what it says.`)
  const result = { ms: synced - started, cpu: cpuMs(child.pid), peak: residentMb(child.pid) }
  await sleep(Number(values.rest))
  const rested = { rested: residentMb(child.pid), cpuAfter: cpuMs(child.pid) - result.cpu }
  child.kill('SIGTERM')
  await ended
  return { ...result, ...rested }
}

const spread = (numbers, digits = 0) => {
  const sorted = [...numbers].sort((a, b) => a - b)
  return [sorted[0], sorted[sorted.length >> 1], sorted.at(-1)].map((number) => number.toFixed(digits)).join(' / ')
}
const fields = ['ms', 'cpu', 'peak', 'rested', 'cpuAfter']
const row = (services, name, cells) => console.log(`| ${services} | ${name} | ${cells.join(' | ')} |`)

console.log(
  '| services | proxy | start → rules ms | CPU ms | RSS MB at the sync | RSS MB after a rest | CPU ms meanwhile |',
)
console.log('|---|---|---|---|---|---|---|')
for (const services of values.services.split(',').map(Number)) {
  ip('netns', 'add', namespace)
  ip('-n', namespace, 'link', 'set', 'lo', 'up')
  ip('-n', namespace, 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth1')
  ip('-n', namespace, 'addr', 'add', '172.30.9.1/24', 'dev', 'eth0')
  ip('-n', namespace, 'link', 'set', 'eth0', 'up')
  const serverFile = fileURLToPath(new URL('cluster-server.js', import.meta.url))
  const serverArgs = [serverFile, String(services), values.endpoints]
  const server = inside(process.execPath, serverArgs, ['ignore', 'inherit', 'inherit', 'ipc'])
  try {
    const { kubeconfig } = await message(server, 'ready')
    const results = forms.map(() => [])
    for (let run = 0; run < Number(values.runs); run++) {
      for (const [index, form] of forms.entries()) results[index].push(await measure(form, server, kubeconfig))
    }
    for (const [index, { name }] of forms.entries())
      row(
        services,
        name,
        fields.map((field) => spread(results[index].map((result) => result[field]))),
      )
    if (values.peer) {
      const ratios = (field) => results[0].map((result, run) => result[field] / results.at(-1)[run][field])
      row(
        services,
        'the first / kube-proxy',
        fields.map((field) => spread(ratios(field), 2)),
      )
    }
  } finally {
    server.kill()
    await once(server, 'exit')
    ip('netns', 'del', namespace)
  }
}
console.log('Each: least / median / most.')
