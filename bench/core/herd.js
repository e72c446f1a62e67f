// All watchers of a server come back at once: after a lost network, and after a restart of the server. See README.md.
import { fork } from 'node:child_process'
import { parsedArgs } from './arguments.js'
import { message, sleep } from './process.js'

const { values, numbers } = parsedArgs({
  services: { type: 'string', default: '5000' },
  endpoints: { type: 'string', default: '10' },
  watchers: { type: 'string', default: '1000' },
  processes: { type: 'string', default: '1' },
  json: { type: 'boolean', default: false },
})
const { services, endpoints, watchers: count, processes } = numbers
const start = (file, ...args) => fork(new URL(file, import.meta.url).pathname, args.map(String))
const size = [services, endpoints, Math.max(100, count)]
const share = Math.ceil(count / processes)

async function startServer() {
  const child = start('herd-server.js', ...size)
  const { address } = await message(child, 'address')
  return { child, address }
}

const swarms = await Promise.all(
  Array.from({ length: processes }, async (_, index) => {
    const swarm = start('herd-watchers.js', ...size, index * share)
    await message(swarm, 'ready')
    swarm.send({ make: Math.min(share, count - index * share) })
    await message(swarm, 'made')
    return swarm
  }),
)

async function report(child) {
  child.send({ report: true })
  return message(child, 'cpuMs')
}

/** All watchers come, and have what they need. */
async function come(what, { child, address }) {
  await report(child)
  const all = Promise.all(swarms.map((swarm) => message(swarm, 'all')))
  const began = performance.timeOrigin + performance.now()
  for (const swarm of swarms) swarm.send({ come: { server: address } })
  const done = await all
  const { cpuMs, pauseMs, ownMs, rssMb } = await report(child)
  const sum = (field) => done.reduce((total, one) => total + one[field], 0)
  const row = {
    what,
    watchers: count,
    'all back (s)': Number(((Math.max(...done.map((one) => one.all)) - began) / 1000).toFixed(2)),
    'server CPU (s)': Number((cpuMs / 1000).toFixed(2)),
    'watchers CPU (s)': Number((sum('cpuMs') / 1000).toFixed(2)),
    'longest pause (ms)': Math.round(pauseMs),
    'own work in a pause (ms)': Math.round(ownMs),
    'most bytes of one': Math.max(...done.map(({ mostBytes }) => mostBytes)),
    'most items of one': Math.max(...done.map(({ mostItems }) => mostItems)),
    'RSS (MB)': Math.round(rssMb),
    'tried again': sum('retries'),
  }
  if (!values.json) console.log(JSON.stringify(row))
  return row
}

async function leave() {
  // The last requests must be on the server.
  await sleep(200 + count / 10)
  for (const swarm of swarms) swarm.send({ leave: true })
  await Promise.all(swarms.map((swarm) => message(swarm, 'left')))
  await sleep(500 + count / 5)
}

const first = await startServer()
const rows = [await come('another server, the same state', first)]
await leave()
rows.push(await come('the same server, nothing changed', first))
await leave()
first.child.send({ change: 1 })
rows.push(await come('the same server, 1 endpoint changed', first))
await leave()
first.child.kill()
const second = await startServer()
second.child.send({ change: 1 })
rows.push(await come('a restarted server, 1 endpoint changed', second))
if (values.json) console.log(JSON.stringify(rows))
else console.table(rows)
second.child.kill()
for (const swarm of swarms) swarm.kill()
process.exit(0)
