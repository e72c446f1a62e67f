// A cluster of up to 5,000 nodes on this machine: one change, a rolling update, a restart of the core, a lost zone. See README.md.
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { message, sleep } from '../core/process.js'
import { writePage } from './page.js'
import { attachNodes, change, come, report, startServer, stopAll } from './tree.js'

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '5000' },
    endpoints: { type: 'string', default: '10' },
    nodes: { type: 'string', default: '100,1000,5000' },
    sockets: { type: 'string', default: '1000' },
    relays: { type: 'string', default: '5' },
    changes: { type: 'string', default: '15' },
    'rolling-changes': { type: 'string', default: '1000' },
    'rolling-seconds': { type: 'string', default: '60' },
    json: { type: 'string' },
    page: { type: 'boolean', default: false },
    from: { type: 'string' },
  },
})
if (values.from) {
  writePage(JSON.parse(readFileSync(values.from, 'utf8')))
  process.exit(0)
}
const number = (name) => Number(values[name])
const sizes = values.nodes.split(',').map(Number)
const most = Math.max(...sizes)
const size = { services: number('services'), endpoints: number('endpoints'), nodes: Math.max(100, most) }
const rounded = (value, digits = 1) => Number(value.toFixed(digits))
const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
const say = (row) => console.log(JSON.stringify(row)) ?? row

/** The same change several times: how long until the last node knows, and what it costs the server. */
async function changes(core, groups, servers = [core]) {
  const times = []
  let cpuMs = 0
  for (let index = 0; index < number('changes') + 2; index++) {
    for (const server of servers) await report(server)
    const { ms } = await change(core, groups, { change: index })
    const costs = []
    for (const server of servers) costs.push(await report(server))
    if (index < 2) continue // warm-up
    times.push(ms)
    cpuMs += Math.max(...costs.map((cost) => cost.cpuMs))
  }
  times.sort((a, b) => a - b)
  return { p50Ms: rounded(at(times, 0.5)), maxMs: rounded(times.at(-1)), cpuMs: rounded(cpuMs / times.length) }
}

async function oneCore(count) {
  const core = await startServer(size)
  const { rssMb: emptyMb } = await report(core, 'memory')
  const sockets = Math.min(count, number('sockets'))
  const group = await attachNodes(core, size, { first: 0, count, sockets })
  const measured = await changes(core, [group])
  const { rssMb } = await report(core, 'memory')
  const row = say({
    what: 'one core',
    nodes: count,
    sockets,
    ...measured,
    emptyMb: rounded(emptyMb, 0),
    rssMb: rounded(rssMb, 0),
  })
  return { core, group, row }
}

async function rolling({ core, group }) {
  const count = number('rolling-changes')
  const everyMs = (number('rolling-seconds') * 1000) / count
  const times = new Map()
  const note = ({ changed, at }) => changed && times.set(changed, at)
  core.child.on('message', note)
  await report(core)
  group.swarm.send({ record: true })
  const began = performance.now()
  for (let index = 0; index < count; index++) {
    core.child.send({ change: index % size.services })
    const wait = began + (index + 1) * everyMs - performance.now()
    if (wait > 0) await sleep(wait)
  }
  const seconds = (performance.now() - began) / 1000
  await sleep(2000)
  const cost = await report(core)
  core.child.off('message', note)
  const answer = message(group.swarm, 'lags')
  group.swarm.send({ lagsOf: [...times] })
  const { lags } = await answer
  return say({
    what: 'rolling update',
    nodes: group.inProcess + number('sockets'),
    changes: count,
    seconds: rounded(seconds),
    p50Ms: rounded(lags.p50),
    p99Ms: rounded(lags.p99),
    maxMs: rounded(lags.max),
    cpuMs: rounded(cost.cpuMs / count),
    pauseMs: rounded(cost.pauseMs, 0),
  })
}

async function zoneLost({ core, group }) {
  await report(core)
  const { ms } = await change(core, [group], { zoneLost: true })
  const { cpuMs, pauseMs } = await report(core)
  const nodes = group.inProcess + number('sockets')
  return say({
    what: 'a zone lost',
    nodes,
    allMs: rounded(ms, 0),
    cpuMs: rounded(cpuMs, 0),
    pauseMs: rounded(pauseMs, 0),
  })
}

/** The core ends, and another one starts in its place: the real connections come back with what they have. */
async function restart({ core, group }) {
  group.swarm.send({ leave: true })
  await message(group.swarm, 'left')
  core.child.kill()
  const next = await startServer(size)
  await report(next)
  const began = performance.timeOrigin + performance.now()
  const { all, mostBytes } = await come({ server: next, swarm: group.swarm }, true)
  const { cpuMs, pauseMs } = await report(next)
  next.child.kill()
  const row = { what: 'a core restarted', nodes: number('sockets'), allMs: rounded(all - began, 0) }
  return say({ ...row, mostBytes, cpuMs: rounded(cpuMs, 0), pauseMs: rounded(pauseMs, 0) })
}

async function relays() {
  const core = await startServer(size)
  const count = number('relays')
  const share = most / count
  const groups = []
  for (let index = 0; index < count; index++) {
    const relay = await startServer(size, core)
    const sockets = Math.min(share, Math.floor(number('sockets') / count))
    groups.push(await attachNodes(relay, size, { first: index * share, count: share, sockets }))
  }
  const measured = await changes(core, groups, [core, ...groups.map(({ server }) => server)])
  return say({ what: `${count} relays`, nodes: most, sockets: number('sockets'), levels: 2, ...measured })
}

try {
  const rows = []
  let large
  for (const count of sizes) {
    const measured = await oneCore(count)
    rows.push(measured.row)
    if (count === most) large = measured
    else {
      measured.core.child.kill()
      measured.group.swarm.kill()
    }
  }
  rows.push(await rolling(large), await zoneLost(large), await restart(large))
  large.group.swarm.kill()
  rows.push(await relays())
  const result = { size, cores: cpus().length, load: rounded(loadavg()[0]), node: process.version, rows }
  if (values.json) writeFileSync(values.json, `${JSON.stringify(result, undefined, 2)}\n`)
  if (values.page) writePage(result)
} finally {
  stopAll()
}
process.exit(0)
