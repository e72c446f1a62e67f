// One change to many watchers: see README.md.
import { fork } from 'node:child_process'
import { parseArgs } from 'node:util'
import { silentLog } from '@kpng/api'
import { serveApi } from '@kpng/core/sinks/api'
import { makeCluster } from './cluster.js'
import { cpuMs, freePort, message, residentMb, sleep, start } from './process.js'

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '100,1000,5000,10000' },
    endpoints: { type: 'string', default: '10' },
    watchers: { type: 'string', default: '1,10,100,1000' },
    changes: { type: 'string', default: '20' },
    peer: { type: 'string' },
    'max-seconds': { type: 'string', default: '300' },
  },
})
const numbers = (text) => text.split(',').map(Number)
const kpng = new URL('../../cli/bin/kpng.js', import.meta.url).pathname
const servers = [{ name: 'kpng', command: `${process.execPath} ${kpng} api --api {api} to-api --listen {listen}` }]
if (values.peer) servers.push({ name: 'peer', command: values.peer })

const median = (sorted) => sorted[Math.floor(sorted.length / 2)]
const within = (promise, what) =>
  Promise.race([
    promise,
    sleep(Number(values['max-seconds']) * 1000).then(() =>
      Promise.reject(new Error(`${what}: gave up after ${values['max-seconds']} s`)),
    ),
  ])

async function measure(server, services, count) {
  const cluster = makeCluster({ services, endpoints: Number(values.endpoints), nodes: Math.max(100, count) })
  const upstream = await serveApi({ store: cluster.store, log: silentLog, listen: 'tcp://127.0.0.1:0' })
  const port = await freePort()
  const command = server.command
    .replace('{api}', upstream.address.replace('tcp://', ''))
    .replace('{listen}', `tcp://127.0.0.1:${port}`)
  const child = await start(command, port)
  const swarm = fork(new URL('watchers.js', import.meta.url).pathname, [`127.0.0.1:${port}`])
  try {
    await message(swarm, 'ready')
    // The first watcher waits for the server to have the whole state; a second one joins when everything is there.
    swarm.send({ connect: 1 })
    await within(message(swarm, 'all'), 'the first state')
    swarm.send({ leave: true })
    await message(swarm, 'left')
    const joinOne = await timed(() => swarm.send({ connect: 1 }), swarm)
    const joinAll = count > 1 ? await timed(() => swarm.send({ connect: count - 1 }), swarm) : joinOne
    await sleep(500)

    const latencies = []
    let cpu = 0
    for (let change = 0; change < Number(values.changes) + 3; change++) {
      swarm.send({ ask: true })
      await message(swarm, 'asked')
      const before = cpuMs(child.pid)
      const latency = await timed(() => cluster.changeOne(), swarm)
      await sleep(30)
      if (change < 3) continue // warm-up
      latencies.push(latency)
      cpu += cpuMs(child.pid) - before
    }
    latencies.sort((a, b) => a - b)
    return {
      server: server.name,
      services,
      watchers: count,
      'join 1 (ms)': Math.round(joinOne),
      'join all (ms)': Math.round(joinAll),
      'change p50 (ms)': Number(median(latencies).toFixed(1)),
      'change max (ms)': Number(latencies.at(-1).toFixed(1)),
      'CPU/change (ms)': Number((cpu / latencies.length).toFixed(1)),
      'RSS (MB)': residentMb(child.pid),
    }
  } finally {
    swarm.kill()
    child.kill()
    await upstream.close(100)
  }
}

/** From now until every watcher has its Sync, by the clock that all processes of the machine share. */
async function timed(act, swarm) {
  const all = message(swarm, 'all')
  const begin = performance.timeOrigin + performance.now()
  act()
  return (await within(all, 'the last watcher')).all - begin
}

const rows = []
for (const count of numbers(values.watchers)) {
  for (const services of numbers(values.services)) {
    for (const server of servers) {
      try {
        rows.push(await measure(server, services, count))
        console.log(JSON.stringify(rows.at(-1)))
      } catch (error) {
        console.log(`${server.name}, ${services} services, ${count} watchers: ${error.message}`)
      }
    }
  }
}
console.table(rows)

for (const count of numbers(values.watchers)) {
  const ours = rows.filter((row) => row.server === 'kpng' && row.watchers === count)
  const [small, large] = [ours[0], ours.at(-1)]
  if (!small || small === large) continue
  const ratio = (column) => (large[column] / Math.max(0.1, small[column])).toFixed(2)
  console.log(
    `${count} watchers, ${large.services} against ${small.services} services: latency × ${ratio('change p50 (ms)')}, CPU × ${ratio('CPU/change (ms)')}`,
  )
}
for (const ours of rows.filter(({ server }) => server === 'kpng')) {
  const peer = rows.find(
    (row) => row.server === 'peer' && row.services === ours.services && row.watchers === ours.watchers,
  )
  if (!peer) continue
  const times = (column) => `× ${(peer[column] / Math.max(0.1, ours[column])).toFixed(1)}`
  console.log(
    `peer against kpng, ${ours.services} services, ${ours.watchers} watchers: change ${times('change p50 (ms)')}, CPU ${times('CPU/change (ms)')}, memory ${times('RSS (MB)')}, join ${times('join 1 (ms)')}, join all ${times('join all (ms)')}`,
  )
}
process.exit(0)
