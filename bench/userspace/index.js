// node bench/userspace/index.js [--rounds 5] [--seconds 1] [--idle 10000] [--peer 'name=command {listen} {upstream}'] …
//
// Direct, kpng with both of its movers, and any peer, in turns; compare the ratios, the figures move with the machine. A peer is a
// TCP proxy given as a command line: {listen} and {upstream} become ports of 127.0.0.1, also in the environment as LISTEN and
// UPSTREAM. For instance, with `frontend f { bind 127.0.0.1:"$LISTEN" … }` in a file: --peer 'haproxy=haproxy -db -f file.cfg'
import { fork, spawn } from 'node:child_process'
import { on, once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { loadavg } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '1' },
    idle: { type: 'string', default: '10000' },
    peer: { type: 'string', multiple: true, default: [] },
  },
})
const seconds = Number(values.seconds)
const firstPort = 18_100
const movers = ['splice', 'portable']
const file = (name) => fileURLToPath(new URL(name, import.meta.url))
const children = new Set()
const started = (child) => {
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})

/** Each connection needs two descriptors in the proxy, which keeps an eighth of its limit back. */
function idleCount() {
  const wanted = Number(values.idle)
  try {
    const [, limit] = /^Max open files\s+\d+\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    const fits = Math.floor((Number(limit) * 7) / 16) - 100
    if (fits < wanted) console.log(`only ${fits} idle connections: at most ${limit} files may be open (ulimit -n)`)
    return Math.min(wanted, fits)
  } catch {
    return wanted
  }
}

const statusOf = (pid, field) => {
  try {
    return Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0)
  } catch {
    return 0
  }
}

/** What the figures depend on. With BBR, the kernel sets a timer for each packet, which is slow in a virtual machine. */
function machine() {
  const load = `load average ${loadavg()[0].toFixed(1)}`
  try {
    return `congestion control ${readFileSync('/proc/sys/net/ipv4/tcp_congestion_control', 'utf8').trim()}, ${load}`
  } catch {
    return load
  }
}

/** Seconds of processor time that the threads of a process have used. */
const cpuOf = (pid) => {
  try {
    const threads = readdirSync(`/proc/${pid}/task`)
    const used = threads.map((tid) => Number(readFileSync(`/proc/${pid}/task/${tid}/schedstat`, 'utf8').split(' ')[0]))
    return used.reduce((sum, nanoseconds) => sum + nanoseconds, 0) / 1e9
  } catch {
    return 0
  }
}

async function ready(port) {
  for (let tries = 0; tries < 1000; tries++) {
    const socket = connect({ port, host: '127.0.0.1' })
    const open = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (open) return
    await pause(50)
  }
  throw new Error(`Nothing listens on 127.0.0.1:${port} after 50 s; run the peer's command by hand to see why.`)
}

function startProxy(name, port, upstreamPort) {
  if (name === 'direct') return undefined
  if (movers.includes(name)) return started(fork(file('proxy.js'), [port, upstreamPort, name]))
  const command = values.peer.find((peer) => peer.startsWith(`${name}=`)).slice(name.length + 1)
  const words = command.split(/\s+/).map((word) => word.replace('{listen}', port).replace('{upstream}', upstreamPort))
  const env = { ...process.env, LISTEN: String(port), UPSTREAM: String(upstreamPort) }
  return started(spawn(words[0], words.slice(1), { env, stdio: ['ignore', 'ignore', 'inherit'] }))
}

async function measure(what, port, parallel, pid) {
  const client = started(fork(file('client.js'), [what, port, seconds, parallel]))
  let cpu = 0
  for await (const [message] of on(client, 'message', { close: ['exit'] })) {
    if (message === 'measuring') cpu = pid ? cpuOf(pid) : 0
    else if (message.held === undefined) return { ...message, cpu: pid ? cpuOf(pid) - cpu : 0 }
    else {
      const memory = pid ? statusOf(pid, 'VmRSS') : 0
      const gone = once(client, 'exit')
      client.send('enough')
      await gone
      return { held: message.held, memory }
    }
  }
  throw new Error(`The client that measured "${what}" ended before it was done.`)
}

/** Ends a proxy and waits for its sockets to be gone. */
async function stop(proxy) {
  if (!proxy || proxy.exitCode !== null) return
  const gone = once(proxy, 'exit')
  proxy.kill('SIGKILL')
  await gone
}

const names = ['direct', ...movers, ...values.peer.map((peer) => peer.split('=')[0])]
const upstreamPorts = names.flatMap((_, index) => [firstPort + 4 * index, firstPort + 4 * index + 1])
const upstream = started(fork(file('upstream.js'), upstreamPorts))
await once(upstream, 'message')
const idle = idleCount()
const running = []
for (const [index, name] of names.entries()) {
  const [upstreamPort, port] = [firstPort + 4 * index, firstPort + 4 * index + (name === 'direct' ? 0 : 2)]
  const proxy = startProxy(name, port, upstreamPort)
  await ready(port)
  running.push({ name, port, upstreamPort, proxy, one: [], sixteen: [], connections: [] })
}
console.log(machine())
// In turns: what else the machine does hits all of them alike.
for (let round = 1; round <= Number(values.rounds); round++) {
  console.log(`round ${round} …`)
  for (const { port, proxy, one } of running) one.push(await measure('streams', port, 1, proxy?.pid))
  for (const { port, proxy, sixteen } of running) sixteen.push(await measure('streams', port, 16, proxy?.pid))
  for (const { port, proxy, connections } of running)
    connections.push(await measure('connections', port, 16, proxy?.pid))
}
for (const row of running) {
  await stop(row.proxy)
  // A fresh process: what streams left on the heap is not what idle connections cost.
  const fresh = startProxy(row.name, row.port + 1, row.upstreamPort + 1)
  await ready(row.port + 1)
  await pause(300)
  row.freshKb = fresh ? statusOf(fresh.pid, 'VmRSS') : 0
  row.held = fresh ? await measure('idle', row.port + 1, idle, fresh.pid) : undefined
  await stop(fresh)
}
upstream.kill('SIGKILL')

/** Of an even number of values, the mean of the two in the middle. */
function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b)
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2
}
const short = (number) => number.toFixed(number < 10 ? 2 : number < 100 ? 1 : 0)
const cpuPerGigabyte = ({ cpu, gigabytes }) => cpu / gigabytes
const value = (results) => short(median(results.map((result) => result.value)))
const table = running.map(({ name, one, sixteen, connections, held, freshKb, proxy }) => ({
  proxy: name,
  '1 stream Gbit/s': value(one),
  'CPU-s/GB': proxy ? short(median(one.map(cpuPerGigabyte))) : '-',
  '16 streams Gbit/s': value(sixteen),
  'CPU-s/GB of 16': proxy ? short(median(sixteen.map(cpuPerGigabyte))) : '-',
  'connections/s': value(connections),
  'CPU-ms each': proxy
    ? short(median(connections.map((result) => (result.cpu * 1000) / (result.value * seconds))))
    : '-',
  failed: connections.reduce((sum, { failed }) => sum + failed, 0),
  [`${idle} idle`]: held
    ? `${held.held} held, ${((held.memory - freshKb) / held.held).toFixed(1)} kB each, ${Math.round(held.memory / 1024)} MB`
    : '-',
}))
console.table(table)

/** The median of the ratios of each round, with the smallest and the largest. */
function ratios(ours, theirs, figure = (result) => result.value) {
  const all = ours.map((result, round) => figure(result) / figure(theirs[round])).sort((a, b) => a - b)
  return `${short(median(all))} (${short(all[0])} to ${short(all.at(-1))})`
}
const [direct, ...proxies] = running
for (const peer of proxies.slice(movers.length)) {
  for (const ours of proxies.slice(0, movers.length)) {
    console.log(
      `${ours.name} / ${peer.name}: one stream ${ratios(ours.one, peer.one)}, its CPU per byte ${ratios(ours.one, peer.one, cpuPerGigabyte)}, ` +
        `16 streams ${ratios(ours.sixteen, peer.sixteen)}, their CPU per byte ${ratios(ours.sixteen, peer.sixteen, cpuPerGigabyte)}, connections/s ${ratios(ours.connections, peer.connections)}`,
    )
  }
}
for (const { name, one, sixteen, connections } of proxies) {
  console.log(
    `${name} / direct: one stream ${ratios(one, direct.one)}, 16 streams ${ratios(sixteen, direct.sixteen)}, connections/s ${ratios(connections, direct.connections)}`,
  )
}
console.log(machine())
process.exit()
