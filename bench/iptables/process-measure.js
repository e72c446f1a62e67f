// One measurement of a whole process, kpng or kube-proxy, in namespaces of its own: from an API server into the kernel.
// Arguments: kpng or kube-proxy, its command, nft or legacy, services, endpoints each, changes. Prints JSON.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, symlinkSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { cpuMs, message, sleep } from '../core/process.js'
import { kubeProxyArgs } from '../nft/kube-proxy.js'

const [proxy, commandLine, flavour, services, endpoints, changes] = process.argv.slice(2)
/** kube-proxy waits a second after each sync before the next one. This is not to be measured. */
const gapMs = 1500
const output = process.env.BENCH_LOG ? process.stderr : 'ignore'

// A /run of its own, for what is to be gone at the end. The machine's xtables lock would be there too, and others may hold it.
spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', '/run'], { stdio: 'inherit' })
// kube-proxy runs the `iptables` that it finds: a folder at the front of the PATH makes that the wanted flavour.
const tools = '/run/iptables'
mkdirSync(tools)
for (const name of ['iptables', 'ip6tables'])
  for (const end of ['', '-save', '-restore'])
    symlinkSync(`/usr/sbin/xtables-${flavour}-multi`, `${tools}/${name}${end}`)
const env = { ...process.env, PATH: `${tools}:${process.env.PATH}` }

for (const line of [
  'link set lo up',
  'link add eth0 type veth peer name eth1',
  'addr add 172.30.9.1/24 dev eth0',
  'link set eth0 up',
])
  spawnSync('ip', line.split(' '), { stdio: 'inherit' })
const serverFile = fileURLToPath(new URL('../nft/cluster-server.js', import.meta.url))
const server = spawn(process.execPath, [serverFile, services, endpoints], {
  env: { ...env, TMPDIR: '/run' },
  stdio: ['ignore', process.stderr, process.stderr, 'ipc'],
})
const { kubeconfig } = await message(server, 'ready')

const flags = `--node-name bench --iptables-flavour ${flavour} --conntrack-max-per-core 0 --conntrack-min 0`
const [command, ...args] =
  proxy === 'kpng'
    ? `${commandLine} kube --kubeconfig ${kubeconfig} to-local to-iptables ${flags}`.split(' ')
    : [commandLine, ...kubeProxyArgs('iptables', kubeconfig)]

const now = () => performance.timeOrigin + performance.now()

/** When the first sync after a time ended. */
async function syncedAfter(after) {
  const answer = message(server, 'synced')
  server.send({ waitSynced: true, after })
  return (await answer).synced
}

/** Starts the proxy, and waits for its first sync. */
async function start() {
  const started = now()
  const child = spawn(command, args, { env, stdio: ['ignore', output, output] })
  const ended = once(child, 'exit')
  const synced = await Promise.race([syncedAfter(started), ended.then(() => undefined)])
  if (synced === undefined) throw new Error(`${command} ended before its first sync. BENCH_LOG=1 shows what it says.`)
  return { child, ended, ms: synced - started, cpu: cpuMs(child.pid) }
}

/** Stops a proxy that is not needed any more. */
async function stop({ child, ended }) {
  child.kill('SIGKILL')
  await ended
}

/** One endpoint of a Service gets another address. Resolves with the time, and the CPU time, until the sync that contains it has ended. */
async function change(pid) {
  const before = cpuMs(pid)
  const changed = message(server, 'changed')
  server.send({ change: Math.floor(Math.random() * Number(services)) })
  const { at } = await changed
  const ms = (await syncedAfter(at)) - at
  const cpu = cpuMs(pid) - before
  await sleep(gapMs)
  return { ms, cpu }
}

const first = await start()
await sleep(gapMs)
await stop(first)
const second = await start()
await sleep(gapMs)
// The first change also compiles the code that it runs.
await change(second.child.pid)
const measured = []
for (let index = 0; index < Number(changes); index++) measured.push(await change(second.child.pid))
const changeCpuMs = measured.reduce((sum, { cpu }) => sum + cpu, 0) / measured.length
const latencies = measured.map(({ ms }) => ms).sort((a, b) => a - b)
const quantile = (share) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))]
const results = { startMs: first.ms, startCpuMs: first.cpu, restartMs: second.ms }
const perChange = { p50Ms: quantile(0.5), p99Ms: quantile(0.99), changeCpuMs }
console.log(JSON.stringify({ proxy, flavour, services: Number(services), ...results, ...perChange }))
process.exit(0)
