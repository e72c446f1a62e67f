// 100,000 random changes while watchers join and leave: is memory flat? The server is in this process, so that its heap can be
// looked at after a collection; the watchers are in another.
import { fork } from 'node:child_process'
import { parseArgs } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { silentLog } from '@kpng/api'
import { serveApi } from '@kpng/core/sinks/api'
import { makeCluster } from './cluster.js'
import { message, sleep } from './process.js'

const { values } = parseArgs({
  options: {
    changes: { type: 'string', default: '100000' },
    services: { type: 'string', default: '1000' },
    watchers: { type: 'string', default: '50' },
  },
})
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc')
const heapMb = () => {
  collect()
  return process.memoryUsage().heapUsed / 1e6
}

const changes = Number(values.changes)
const watchers = Number(values.watchers)
const cluster = makeCluster({ services: Number(values.services), endpoints: 10, nodes: 100 })
// All nodes of a benchmark have one address.
const limits = { maxConnectionsPerPeer: 20_000 }
const server = await serveApi({ store: cluster.store, log: silentLog, listen: 'tcp://127.0.0.1:0', limits })
const authority = server.address.replace('tcp://', '')
const swarm = fork(new URL('watchers.js', import.meta.url).pathname, [authority])
await message(swarm, 'ready')

const samples = []
const rounds = 50
for (let round = 0; round < rounds; round++) {
  swarm.send({ connect: watchers })
  await message(swarm, 'all')
  for (let batch = 0; batch < 10; batch++) {
    swarm.send({ ask: true })
    await message(swarm, 'asked')
    const all = message(swarm, 'all')
    for (let change = 0; change < changes / rounds / 10; change++) cluster.changeOne()
    await all
  }
  swarm.send({ leave: true })
  await message(swarm, 'left')
  await sleep(20)
  if (round % 5 !== 4) continue
  const sample = {
    changes: ((round + 1) * changes) / rounds,
    heapMb: Number(heapMb().toFixed(1)),
    rssMb: Math.round(process.memoryUsage().rss / 1e6),
    calls: server.stats.calls,
    connections: server.stats.connections,
  }
  samples.push(sample)
  console.log(JSON.stringify(sample))
}
console.table(samples)
const grown = samples.at(-1).heapMb / samples[1].heapMb
console.log(`heap after ${changes} changes against heap after ${samples[1].changes}: × ${grown.toFixed(2)} (flat is 1)`)
process.exit(grown > 1.2 ? 1 : 0)
