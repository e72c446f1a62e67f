// A cluster of up to 5,000 nodes on this machine: one change, a rolling update, a lost zone, all nodes come back, relays. See README.md.
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { fail, parsedArgs } from '../core/arguments.js'
import { message, sleep } from '../core/process.js'
import { writePage } from './page.js'
import { change, come, leave, makeNodes, report, startBare, startServer, stopAll } from './tree.js'

const { values, numbers } = parsedArgs({
  services: { type: 'string', default: '5000' },
  endpoints: { type: 'string', default: '10' },
  nodes: { type: 'string', default: '100,1000,5000' },
  relays: { type: 'string', default: '5' },
  changes: { type: 'string', default: '15' },
  'rolling-changes': { type: 'string', default: '1000' },
  'rolling-seconds': { type: 'string', default: '60' },
  'limit-seconds': { type: 'string', default: '480' },
  json: { type: 'string' },
  page: { type: 'boolean', default: false },
  from: { type: 'string' },
})
if (values.from) {
  writePage(JSON.parse(readFileSync(values.from, 'utf8')))
  process.exit(0)
}
const sizes = values.nodes.split(',').map(Number)
if (!sizes.every((count) => Number.isInteger(count) && count > 0)) {
  fail(`--nodes is "${values.nodes}": give whole numbers above 0, separated by commas.`)
}
const most = Math.max(...sizes)
if (most % numbers.relays !== 0)
  fail(`--nodes ${most} cannot be divided among ${numbers.relays} relays: change --relays.`)
const size = { services: numbers.services, endpoints: numbers.endpoints, nodes: Math.max(100, most) }
const rounded = (value, digits = 1) => Number(value.toFixed(digits))
const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
const say = (row) => console.log(JSON.stringify(row)) ?? row
const costOf = ({ cpuMs, pauseMs, ownMs }) => ({
  cpuMs: rounded(cpuMs, 0),
  pauseMs: rounded(pauseMs, 0),
  ownMs: rounded(ownMs, 0),
})

/** The same change several times: how long until the last node knows, and what it costs the busiest server and all nodes. */
async function changes(core, groups) {
  const measured = []
  for (let index = 0; index < numbers.changes + 2; index++) {
    const one = await change(core, groups, { change: index })
    if (index >= 2) measured.push(one) // after the warm-up
  }
  const times = measured.map(({ ms }) => ms).sort((a, b) => a - b)
  const mean = (field) => rounded(measured.reduce((sum, one) => sum + one[field], 0) / measured.length)
  return {
    p50Ms: rounded(at(times, 0.5)),
    maxMs: rounded(times.at(-1)),
    cpuMs: mean('cpuMs'),
    nodesCpuMs: mean('nodesCpuMs'),
  }
}

async function oneCore(count) {
  const [server, swarm] = await Promise.all([startServer(size), makeNodes(size, { first: 0, count })])
  const group = { server, swarm, count }
  await come(group)
  const measured = await changes(server, [group])
  const { rssMb } = await report(server, 'memory')
  return { group, row: say({ what: 'one core', nodes: count, ...measured, rssMb: rounded(rssMb, 0) }) }
}

/** As many bytes to as many plain sockets: no core can be faster on this machine. */
async function bareSockets(count) {
  const group = await startBare(count)
  await come(group)
  const row = say({ what: 'plain sockets', nodes: count, ...(await changes(group.server, [group])) })
  group.server.child.kill()
  group.swarm.kill()
  return row
}

/** All nodes of a group come at once. */
async function comeBack(how, { server, swarm, count }) {
  await report(server)
  const began = performance.timeOrigin + performance.now()
  const { all, mostBytes, cpuMs: nodesCpuMs, retries } = await come({ server, swarm })
  const cost = costOf(await report(server))
  const row = { what: 'all come back', how, nodes: count, allMs: rounded(all - began, 0), mostBytes, retries }
  return say({ ...row, ...cost, nodesCpuMs: rounded(nodesCpuMs, 0) })
}

/** The core is restarted; then the nodes lose their connections; then the core is restarted and its state is another one. */
async function herd(group) {
  const rows = []
  await sleep(500)
  for (const how of [
    'a restarted core with the same state',
    'the same core',
    'a restarted core, one endpoint changed',
  ]) {
    await leave(group)
    if (how === 'the same core') await sleep(1000 + group.count / 5)
    else {
      group.server.child.kill()
      group.server = await startServer(size)
    }
    if (how.endsWith('changed')) group.server.child.send({ change: 1 })
    await sleep(500)
    rows.push(await comeBack(how, group))
  }
  return rows
}

async function rolling({ server, swarm, count: nodes }) {
  const count = numbers['rolling-changes']
  const everyMs = (numbers['rolling-seconds'] * 1000) / count
  const times = new Map()
  const note = ({ changed, at }) => changed && times.set(changed, at)
  server.child.on('message', note)
  await report(server)
  swarm.send({ record: true })
  const began = performance.now()
  for (let index = 0; index < count; index++) {
    server.child.send({ change: index % size.services })
    const wait = began + (index + 1) * everyMs - performance.now()
    if (wait > 0) await sleep(wait)
  }
  const seconds = (performance.now() - began) / 1000
  await sleep(2000)
  const cost = await report(server)
  server.child.off('message', note)
  const answer = message(swarm, 'lags')
  swarm.send({ lagsOf: [...times] })
  const { lags } = await answer
  return say({
    what: 'rolling update',
    nodes,
    changes: count,
    seconds: rounded(seconds),
    p50Ms: rounded(lags.p50),
    p99Ms: rounded(lags.p99),
    maxMs: rounded(lags.max),
    ...costOf(cost),
    cpuMs: rounded(cost.cpuMs / count),
  })
}

async function zoneLost({ server, swarm, count: nodes }) {
  const { ms, ...cost } = await change(server, [{ server, swarm }], { zoneLost: true })
  return say({
    what: 'a zone lost',
    nodes,
    allMs: rounded(ms, 0),
    ...costOf(cost),
    nodesCpuMs: rounded(cost.nodesCpuMs, 0),
  })
}

async function relays() {
  const core = await startServer(size)
  const share = most / numbers.relays
  const groups = await Promise.all(
    Array.from({ length: numbers.relays }, async (_, index) => ({
      server: await startServer(size, core),
      swarm: await makeNodes(size, { first: index * share, count: share }),
    })),
  )
  for (const group of groups) await come(group)
  return say({ what: `${numbers.relays} relays`, nodes: most, ...(await changes(core, groups)) })
}

async function measure() {
  const rows = []
  for (const count of sizes) {
    const { group, row } = await oneCore(count)
    rows.push(row)
    if (count === most) rows.push(await rolling(group))
    // Each node is told of a third of all endpoints: with the most nodes that alone would take long.
    if (count === sizes.at(-2) || sizes.length === 1) rows.push(await zoneLost(group))
    // A hundred nodes come back so fast that there is nothing to see.
    if (count === most || count >= 1000) rows.push(...(await herd(group)))
    group.server.child.kill()
    group.swarm.kill()
  }
  rows.push(await relays())
  rows.push(await bareSockets(most))
  return rows
}

const began = performance.now()
const limit = setTimeout(() => {
  console.error(`Not done after ${numbers['limit-seconds']} s (--limit-seconds): stopped. The machine may be too busy.`)
  stopAll()
  process.exit(1)
}, numbers['limit-seconds'] * 1000)
try {
  const load = rounded(loadavg()[0])
  const rows = await measure()
  const seconds = rounded((performance.now() - began) / 1000, 0)
  const result = { size, cores: cpus().length, load, node: process.version, seconds, rows }
  if (values.json) writeFileSync(values.json, `${JSON.stringify(result, undefined, 2)}\n`)
  if (values.page) writePage(result)
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
} finally {
  clearTimeout(limit)
  stopAll()
}
process.exit()
