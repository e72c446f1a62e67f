// How much memory and time kpng's Kubernetes source needs for a large cluster, and how soon a change is in the store.
//
//   npm run build && node bench/kube/list.js [slices 5000] [endpoints 100] [changes 300]
//
// The API server and the reader are separate processes. The figures to compare with were measured once, for the same 5,000
// slices × 100 endpoints, with the official JavaScript client and with a bare streaming-list reader that only keeps fields.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const [slices = 5000, endpoints = 100, changes = 300] = process.argv.slice(2).map(Number)
const script = (name) => fileURLToPath(new URL(name, import.meta.url))

async function run(mode) {
  const server = fork(script('server.js'), [slices, endpoints, mode])
  try {
    const [{ url, bytes }] = await once(server, 'message')
    const reader = fork(script('reader.js'), [url, slices, changes])
    const exited = once(reader, 'exit')
    const result = await Promise.race([
      once(reader, 'message').then(([message]) => message),
      exited.then(([code]) => Promise.reject(new Error(`The reader ended with ${code}; was everything built?`))),
    ])
    await exited
    return { mode, bytes, ...result }
  } finally {
    server.kill()
  }
}

const round = (value, digits = 0) => value.toFixed(digits)
const rows = []
for (const mode of ['streaming', 'cache', 'pages']) {
  const result = await run(mode)
  const size = `${round(result.bytes / 1e6)} MB of JSON`
  console.error(
    `${mode}: ${result.endpoints} endpoints read from ${size}, ${result.apiEvents} events, ${result.storeRevisions} revisions`,
  )
  rows.push({
    reader: `kpng, ${mode}`,
    'peak RSS (MB)': round(result.peakRssMb),
    'before (MB)': round(result.rssBeforeMb),
    'longest block (ms)': round(result.longestBlockMs),
    'synced after (s)': round(result.syncedMs / 1000, 2),
    'CPU (s)': round(result.cpuMs / 1000, 2),
    'change p50 (ms)': round(result.p50Ms, 2),
    'change p99 (ms)': round(result.p99Ms, 2),
    'relist peak RSS (MB)': round(result.relistPeakRssMb),
    'relist block (ms)': round(result.relistBlockMs),
    'relist revisions': result.relistRevisions,
  })
}
rows.push(
  { reader: 'official client', 'peak RSS (MB)': '780-890', 'longest block (ms)': '6000-8000' },
  { reader: 'bare reader', 'peak RSS (MB)': '190', 'longest block (ms)': '300' },
)
console.table(rows)
