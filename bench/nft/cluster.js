// From the API server to the kernel: start → all rules, one EndpointSlice change → rule in the kernel, CPU and memory of the
// proxy. Needs root: everything runs in a network namespace of its own. See README.md.
import { spawn, spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { cpuMs, message, residentMb, sleep } from '../core/process.js'

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '100,1000,5000,10000' },
    endpoints: { type: 'string', default: '10' },
    changes: { type: 'string', default: '30' },
    gap: { type: 'string', default: '40' },
    rest: { type: 'string', default: '1500' },
    flood: { type: 'string', default: '0' },
    kpng: { type: 'string' },
    backend: { type: 'string', default: 'to-nft' },
    peer: { type: 'string' },
  },
})
const kpng = values.kpng ?? `${process.execPath} ${new URL('../../cli/bin/kpng.js', import.meta.url).pathname}`
const proxies = [
  {
    name: 'kpng',
    command: `${kpng} kube --kubeconfig {kubeconfig} to-local ${values.backend} --node-name bench --conntrack-max-per-core 0 --conntrack-min 0`,
  },
]
if (values.peer) proxies.push({ name: 'peer', command: values.peer })

const quantile = (sorted, part) =>
  Number(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))].toFixed(1))
const ip = (...args) => spawnSync('ip', args, { stdio: 'inherit' })

/** Lines of `nft monitor`; resolves a wait when an address appears. */
class Monitor {
  #waits = new Map()

  constructor(namespace) {
    this.child = spawn('ip', ['netns', 'exec', namespace, 'nft', 'monitor', 'new'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    this.child.stdout.on('data', (chunk) => {
      const now = performance.timeOrigin + performance.now()
      for (const [address] of chunk.toString().matchAll(/\b21\.\d+\.\d+\.\d+\b/g)) {
        this.#waits.get(address)?.(now)
        this.#waits.delete(address)
      }
    })
  }

  seen(address) {
    return new Promise((resolve) => this.#waits.set(address, resolve))
  }
}

/** For data planes that `nft monitor` does not see: when the first sync after a change was done, as the proxy's metrics say. */
class SyncTimes {
  constructor(server) {
    this.server = server
  }

  async seen(_address, changedAt) {
    const synced = message(this.server, 'synced')
    this.server.send({ waitSynced: true, after: changedAt })
    return (await synced).synced
  }
}

async function measure(proxy, services) {
  const namespace = `kpng-bench-${process.pid}`
  ip('netns', 'add', namespace)
  ip('-n', namespace, 'link', 'set', 'lo', 'up')
  ip('-n', namespace, 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth1')
  ip('-n', namespace, 'addr', 'add', '172.30.9.1/24', 'dev', 'eth0')
  ip('-n', namespace, 'link', 'set', 'eth0', 'up')
  const inside = (command, args, stdio) => spawn('ip', ['netns', 'exec', namespace, command, ...args], { stdio })
  const children = []
  try {
    const serverFile = new URL('cluster-server.js', import.meta.url).pathname
    const server = inside(
      process.execPath,
      [serverFile, String(services), values.endpoints],
      ['ignore', 'inherit', 'inherit', 'ipc'],
    )
    children.push(server)
    const { kubeconfig } = await message(server, 'ready')
    const [command, ...args] = proxy.command.replace('{kubeconfig}', kubeconfig).split(' ')
    const output = process.env.BENCH_LOG ? 'inherit' : 'ignore'
    const started = performance.timeOrigin + performance.now()
    const child = inside(command, args, ['ignore', output, output])
    children.push(child)
    server.send({ waitSynced: true })
    const { synced } = await message(server, 'synced')
    const monitor = values.backend === 'to-nft' ? new Monitor(namespace) : new SyncTimes(server)
    if (monitor.child) children.push(monitor.child)
    await sleep(Number(values.rest))
    const latencies = []
    let cpu = 0
    for (let change = 0; change < Number(values.changes) + 3; change++) {
      const before = cpuMs(child.pid)
      const changed = message(server, 'changed')
      server.send({ change: Math.floor(Math.random() * services) })
      const { changed: address, at } = await changed
      const seenAt = await monitor.seen(address, at)
      await sleep(Number(values.gap))
      if (change < 3) continue // warm-up
      latencies.push(seenAt - at)
      cpu += cpuMs(child.pid) - before
    }
    latencies.sort((a, b) => a - b)
    const flood = Number(values.flood) > 0 ? await floodFor(Number(values.flood), services, server, monitor) : {}
    return {
      proxy: proxy.name,
      services,
      'start → rules (ms)': Math.round(synced - started),
      'change p50 (ms)': quantile(latencies, 0.5),
      'change p99 (ms)': quantile(latencies, 0.99),
      'CPU/change (ms)': Number((cpu / latencies.length).toFixed(1)),
      'RSS (MB)': residentMb(child.pid),
      ...flood,
    }
  } finally {
    for (const child of children.reverse()) child.kill()
    await sleep(200)
    ip('netns', 'del', namespace)
  }
}

/** A thousand changes a second for a while; how far behind is the kernel, at worst? One change in a hundred is looked at. */
async function floodFor(seconds, services, server, monitor) {
  let worst = 0
  let pending = 0
  for (let second = 0; second < seconds; second++) {
    const began = performance.now()
    for (let change = 0; change < 1000; change++) {
      const watched = change % 100 === 0
      const changed = watched && message(server, 'changed')
      server.send({ change: Math.floor(Math.random() * services) })
      if (changed) {
        pending++
        // A later change of the same service may overtake it: then it is never in the kernel, and is not counted.
        changed.then(({ changed: address, at }) =>
          Promise.race([monitor.seen(address).then((seenAt) => seenAt - at), sleep(5000).then(() => 0)]).then((lag) => {
            worst = Math.max(worst, lag)
            pending--
          }),
        )
      }
      if (change % 50 === 49) await sleep(Math.max(0, change + 1 - (performance.now() - began)))
    }
  }
  while (pending > 0) await sleep(100)
  return { 'flood: furthest behind (ms)': Math.round(worst) }
}

// The namespace goes with the process, however that ends.
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    spawnSync('ip', ['netns', 'del', `kpng-bench-${process.pid}`], { stdio: 'ignore' })
    process.exit(1)
  })
}

const rows = []
for (const services of values.services.split(',').map(Number)) {
  for (const proxy of proxies) {
    rows.push(await measure(proxy, services))
    console.log(JSON.stringify(rows.at(-1)))
  }
}
console.table(rows)
const ours = rows.filter(({ proxy }) => proxy === 'kpng')
if (ours.length > 1) {
  const [small, large] = [ours[0], ours.at(-1)]
  const ratio = large['change p50 (ms)'] / Math.max(0.1, small['change p50 (ms)'])
  console.log(`change p50, ${large.services} against ${small.services} services: × ${ratio.toFixed(2)}`)
}
for (const one of ours) {
  const peer = rows.find(({ proxy, services }) => proxy === 'peer' && services === one.services)
  if (!peer) continue
  const times = (column) => `× ${(peer[column] / Math.max(0.1, one[column])).toFixed(1)}`
  console.log(
    `peer against kpng, ${one.services} services: start ${times('start → rules (ms)')}, change p50 ${times('change p50 (ms)')}, p99 ${times('change p99 (ms)')}, CPU ${times('CPU/change (ms)')}, memory ${times('RSS (MB)')}`,
  )
}
process.exit(0)
