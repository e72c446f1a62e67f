// What tracing costs: a backend fed with a thousand changes a second, with tracing off, and with one trace in a hundred kept and
// sent to a collector. CPU of this process; the two are interleaved, so that what else the machine does hits both alike.
import { fork } from 'node:child_process'
import { parseArgs } from 'node:util'
import { silentLog } from '@kpng/api'
import { runBackend } from '@kpng/client'
import { changeSetsOf } from '@kpng/core/sinks/local'
import { startTracing } from '@kpng/node/tracing'
import { makeCluster } from './cluster.js'
import { message, sleep } from './process.js'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '40' },
    ratio: { type: 'string', default: '0.01' },
  },
})
const collector = fork(new URL('collector.js', import.meta.url).pathname)
const { port } = await message(collector, 'port')
const endpoint = `http://127.0.0.1:${port}`
const cluster = makeCluster({ services: 1000, endpoints: 10, nodes: 100 })

/** CPU milliseconds for so many seconds of a thousand changes each. */
async function run(traced) {
  const tracing = traced
    ? await startTracing({ endpoint, sampleRatio: Number(values.ratio), nodeName: 'node-1', log: silentLog })
    : undefined
  const stop = new AbortController()
  let syncs = 0
  const backend = {
    setup: async () => {},
    sync: async (_view, _changes, steps) => {
      syncs++
      const now = performance.timeOrigin + performance.now()
      steps?.push({ name: 'transaction', startedAtMs: now, endedAtMs: now, attributes: { 'kpng.operations': 2 } })
    },
    cleanup: async () => {},
  }
  const running = runBackend(backend, {
    changeSets: changeSetsOf(cluster.store),
    nodeName: 'node-1',
    log: silentLog,
    signal: stop.signal,
    withSteps: traced,
    ...(tracing ? { onSync: tracing.recordSync } : {}),
  })
  await sleep(500)
  const before = process.cpuUsage()
  const first = syncs
  for (let second = 0; second < Number(values.seconds); second++) {
    const began = performance.now()
    for (let change = 0; change < 1000; change++) {
      cluster.changeOne()
      // One turn each, or changes would come together and be one sync.
      await new Promise((resolve) => setImmediate(resolve))
      const ahead = change + 1 - (performance.now() - began)
      if (ahead > 2) await sleep(ahead)
    }
  }
  const { user, system } = process.cpuUsage(before)
  stop.abort()
  await running
  await tracing?.close()
  return { cpuMs: (user + system) / 1000, syncs: syncs - first }
}

/** One right after the other, each first in every second round. */
async function pair(round) {
  if (round % 2 === 0) return { off: await run(false), on: await run(true) }
  const on = await run(true)
  return { off: await run(false), on }
}

await pair(0)
const pairs = []
for (let round = 0; round < Number(values.rounds); round++) {
  pairs.push(await pair(round))
  console.log(JSON.stringify(pairs.at(-1)))
}
const ratios = pairs.map(({ off, on }) => on.cpuMs / off.cpuMs).sort((a, b) => a - b)
const at = (share) => ratios[Math.floor(share * (ratios.length - 1))].toFixed(3)
const sum = (side) => pairs.reduce((total, one) => total + one[side].cpuMs, 0)
console.log(`CPU with tracing (${values.ratio} kept) against without, ${pairs.length} pairs:`)
console.log(
  `× ${at(0.5)} median of the pairs (quartiles ${at(0.25)} and ${at(0.75)}), × ${(sum('on') / sum('off')).toFixed(3)} in all`,
)
collector.kill()
process.exit(0)
