// Changes, replaced programs and restarts while two threads connect without a pause and check every answer.
// Needs root, gcc, nft, iproute2, util-linux, and a build (`npm run build`).
//   node bench/ebpf/under-load.js [--changes 100000] [--wide 15000] [--replacements 1000] [--connections 10000]
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { BpfLink, loadBpf, loadProgram } from '@kpng/linux/bpf'
import { createMaps, tableMaps } from '../../backends/ebpf/dist/kernel/maps.js'
import { frontendKeyOf, shapesFor, sizesFor } from '../../backends/ebpf/dist/layout.js'
import { programFor } from '../../backends/ebpf/dist/programs.js'
import { keyText } from '../../backends/ebpf/dist/tables/hash-table.js'
import { Tables } from '../../backends/ebpf/dist/tables/tables.js'
import { Sandbox } from './sandbox.js'

const { values } = parseArgs({
  options: {
    changes: { type: 'string', default: '100000' },
    wide: { type: 'string', default: '15000' },
    replacements: { type: 'string', default: '1000' },
    connections: { type: 'string', default: '10000' },
  },
})
const numbers = 64
const entryOf = (service, from, count) => ({
  key: keyText(frontendKeyOf(`10.96.0.${service}`, 80)),
  endpoints: Array.from({ length: count }, (_, at) => (from + at) % numbers).map((n) => ({
    ip: `127.${service}.0.${n}`,
    port: 1000 + n,
  })),
  affinitySeconds: 0,
})
const turn = () => new Promise((resolve) => setImmediate(resolve))
const sandbox = new Sandbox(['sockets'])
const failures = []

/** Loads a connect program and attaches it; no getpeername, so that sockets tell the truth. */
async function attach(pauses) {
  const sys = await loadBpf()
  const sizes = sizesFor(131_072, false)
  const maps = createMaps(sys, shapesFor(sizes), undefined)
  const tables = new Tables(tableMaps(sys, maps, sizes), { balancing: 'random' })
  const pause = (a) => {
    for (let call = 0; call < pauses; call++) a.call('monotonicTime')
  }
  const load = () =>
    loadProgram(
      sys,
      'connect4',
      programFor('connect4', { maps, hostNamespace: 0n, keepsPeers: false, counts: true, pause }).code,
    )
  const cgroup = openSync(sandbox.cgroups.sockets, 'r')
  const program = load()
  const link = BpfLink.create(sys, 'connect4', program, cgroup)
  for (const service of [1, 2]) await tables.change([[entryOf(service, 0, 1).key, entryOf(service, 0, 1)]])
  return { tables, link, load, close: () => [link.fd, program, cgroup].forEach(closeSync) }
}

/** Runs work while others connect. Returns what they saw. */
async function whileConnecting(work) {
  const child = sandbox.start([sandbox.traffic, 'check', '2'], { cgroup: 'sockets' })
  await turn()
  await work()
  child.stdin.end()
  const [line] = await once(child.lines, 'line')
  const seen = JSON.parse(line)
  const wrong = seen.ofAnotherService + seen.torn + seen.unresolved + seen.failed
  if (wrong > 0 || seen.connects === 0) failures.push(line)
  return line
}

async function changes(count, pauses) {
  const { tables, close } = await attach(pauses)
  let cpu = 0
  const seen = await whileConnecting(async () => {
    const before = process.cpuUsage()
    for (let round = 0; round < count; round++) {
      const entry = entryOf(1 + (round & 1), (round * 31) % numbers, 1 + ((round * 7) % 13))
      await tables.change([[entry.key, entry]])
      if (round % 50 === 49) await turn()
    }
    const { user, system } = process.cpuUsage(before)
    cpu = user + system
  })
  const slow = pauses > 0 ? ', programs made slow' : ''
  console.log(`${count} changes${slow}: ${(cpu / count).toFixed(1)} µs of CPU each; ${seen}`)
  if (tables.leftOut.size > 0) failures.push('the maps were full')
  await tables.close()
  close()
}

async function replacements(count) {
  const { link, load, tables, close } = await attach(0)
  const seen = await whileConnecting(async () => {
    for (let round = 0; round < count; round++) {
      const program = load()
      link.replaceProgram(program)
      closeSync(program)
      await turn()
    }
  })
  console.log(`${count} programs replaced: ${seen}`)
  await tables.close()
  close()
}

async function restarts(count) {
  mkdirSync(sandbox.bpffs, { recursive: true })
  ;(await loadBpf()).mountBpffs(sandbox.bpffs)
  const script = fileURLToPath(new URL('proxy.js', import.meta.url))
  const start = async () => {
    const proxy = sandbox.start([process.execPath, script, sandbox.cgroups.sockets, sandbox.bpffs, '200', 'changing'])
    await once(proxy.lines, 'line')
    return proxy
  }
  let proxy = await start()
  let isOver = false
  const connecting = sandbox
    .run([sandbox.traffic, 'connect', '10.96.0.1', '80', String(count)], { cgroup: 'sockets' })
    .finally(() => {
      isOver = true
    })
  let kills = 0
  while (!isOver) {
    proxy.kill('SIGKILL')
    kills++
    await once(proxy, 'close')
    proxy = await start()
  }
  const seen = await connecting
  if (seen.failed > 0) failures.push(JSON.stringify(seen))
  console.log(`killed and started ${kills} times: ${JSON.stringify(seen)}`)
}

try {
  await sandbox.serve('0.0.0.0', 1000, numbers)
  await sandbox.serve('0.0.0.0', 7000, 1)
  await changes(Number(values.changes), 0)
  await changes(Number(values.wide), 300)
  await replacements(Number(values.replacements))
  await restarts(Number(values.connections))
} finally {
  await sandbox.remove()
}
if (failures.length > 0) {
  console.error('WRONG:', failures)
  process.exitCode = 1
}
process.exit()
