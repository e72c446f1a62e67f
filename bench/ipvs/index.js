// Start, adopt and change at several sizes. With --peer, a command that does the same work in the same run, in a namespace of its own.
// Needs root, nft, a kernel with IPVS, and a build (`npm run build`).
//   node bench/ipvs/index.js [--sizes 1000,5000] [--endpoints 10] [--changes 300] [--peer '<command with {services} and {endpoints}>']
import { spawnSync } from 'node:child_process'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '1000,5000' },
    endpoints: { type: 'string', default: '10' },
    changes: { type: 'string', default: '300' },
    peer: { type: 'string' },
  },
})

/** Runs a command where no rule of the machine's own is touched. */
function inNamespace(command) {
  const script = 'ip link set lo up && exec "$0" "$@"'
  const { status, stdout, stderr } = spawnSync('unshare', ['--net', 'sh', '-c', script, ...command], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`${command.join(' ')} failed:\n${stderr}`)
  return stdout
}

const measure = fileURLToPath(new URL('measure.js', import.meta.url))
const short = (value) => value.toFixed(value < 10 ? 2 : 0)
console.log(
  '| services | load ms | adopt ms | change p50 ms | p99 ms | CPU ms/change | messages per change | RSS MB | peer ms |',
)
console.log('|---|---|---|---|---|---|---|---|---|')
for (const services of values.sizes.split(',')) {
  const seen = JSON.parse(inNamespace([process.execPath, measure, services, values.endpoints, values.changes]))
  const { loadMs, adoptMs, p50Ms, p99Ms, cpuMsPerChange, residentMegabytes, messages } = seen
  let peer = '–'
  if (values.peer) {
    const words = values.peer.replace('{services}', services).replace('{endpoints}', values.endpoints).split(' ')
    const started = performance.now()
    inNamespace(words)
    peer = short(performance.now() - started)
  }
  const cells = [loadMs, adoptMs, p50Ms, p99Ms, cpuMsPerChange].map(short).join(' | ')
  const counts = Object.entries(messages).map(([kind, numbers]) => `${kind} ${numbers.join(' or ')}`)
  console.log(
    `| ${services} × ${values.endpoints} | ${cells} | ${counts.join(', ')} | ${short(residentMegabytes)} | ${peer} |`,
  )
}
