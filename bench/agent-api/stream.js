// node bench/agent-api/stream.js [--services 5000] [--endpoints 10] [--changes 100] [--seconds 5] [--rounds 8] [--plain]
// What open live pages cost the agent: its CPU time without a reader of /v1/stream, with one, and with ten, in turns in one run.
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { message, sleep } from '../core/process.js'

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '5000' },
    endpoints: { type: 'string', default: '10' },
    changes: { type: 'string', default: '100' },
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '8' },
    plain: { type: 'boolean', default: false },
  },
})
const folder = mkdtempSync(join(tmpdir(), 'kpng-bench-'))
const socketPath = join(folder, 'agent.sock')
const agent = fork(new URL('agent.js', import.meta.url), [
  socketPath,
  values.services,
  values.endpoints,
  values.changes,
])
await message(agent, 'ready')
await sleep(3000)

async function usage() {
  const answer = message(agent, 'cpuMs')
  agent.send({})
  return await answer
}

/** Reads and forgets. Resolves when the snapshot has begun to arrive. */
function open() {
  const reader = { bytes: 0, close: () => asked.destroy() }
  const headers = values.plain ? {} : { 'accept-encoding': 'gzip' }
  const asked = request({ socketPath, path: '/v1/stream', headers, agent: false })
  asked.on('error', () => {})
  asked.end()
  return new Promise((resolve) =>
    asked.on('response', (response) => {
      response.on('error', () => {})
      response.on('data', (chunk) => {
        reader.bytes += chunk.length
        if (reader.bytes > 1000) resolve(reader)
      })
    }),
  )
}

/** CPU in percent of a core, syncs per second, and bytes per second and reader. */
async function measure(readers) {
  const open_ = await Promise.all(Array.from({ length: readers }, open))
  // The snapshots are not what is measured.
  await sleep(2000)
  const bytesBefore = open_.reduce((sum, { bytes }) => sum + bytes, 0)
  const before = await usage()
  await sleep(Number(values.seconds) * 1000)
  const after = await usage()
  const bytes = open_.reduce((sum, reader) => sum + reader.bytes, 0) - bytesBefore
  for (const { close } of open_) close()
  const ms = after.nowMs - before.nowMs
  return {
    percent: ((after.cpuMs - before.cpuMs) / ms) * 100,
    syncsPerSecond: ((after.syncs - before.syncs) / ms) * 1000,
    bytesPerSecond: readers === 0 ? 0 : (bytes / readers / ms) * 1000,
  }
}

const counts = [0, 1, 10]
const results = new Map(counts.map((count) => [count, []]))
// The code is compiled while it runs: the first rounds cost more.
for (const count of [...counts, ...counts]) await measure(count)
for (let round = 0; round < Number(values.rounds); round++) {
  // There and back again: what the machine does beside it is in all of them.
  for (const count of round % 2 === 0 ? counts : [...counts].reverse()) results.get(count).push(await measure(count))
}
const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)]
const of = (count, field) => median(results.get(count).map((result) => result[field]))
/** The median of the differences within a round, in percent of a core. */
const extraOf = (count) =>
  median(results.get(count).map(({ percent }, round) => percent - results.get(0)[round].percent))
console.log(
  `${values.services} Services × ${values.endpoints}, ${values.changes} changes per second; medians of ${values.rounds} rounds`,
)
for (const count of counts) {
  const all = results.get(count).map(({ percent }) => percent.toFixed(1))
  const extra = extraOf(count)
  console.log(
    `${String(count).padStart(2)} pages: ${of(count, 'percent').toFixed(1)} % of a core (${all.join(', ')}), ${extra.toFixed(1)} % for the pages, ` +
      `${of(count, 'syncsPerSecond').toFixed(0)} syncs/s, ${(of(count, 'bytesPerSecond') / 1000).toFixed(1)} kB/s per page`,
  )
}
console.log(`ten pages cost ${(extraOf(10) / extraOf(1)).toFixed(2)} × one`)
agent.disconnect()
rmSync(folder, { recursive: true, force: true })
process.exit()
