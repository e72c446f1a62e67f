// The simulated cluster: servers, and the nodes below them.
import { fork } from 'node:child_process'
import { message, sleep } from '../core/process.js'

const children = new Set()

function start(file, ...args) {
  const child = fork(new URL(file, import.meta.url).pathname, args.map(String), { execArgv: ['--expose-gc'] })
  child.setMaxListeners(100)
  children.add(child)
  child.on('exit', () => children.delete(child))
  return child
}

export function stopAll() {
  for (const child of children) child.kill('SIGKILL')
}

/** A core, or a relay of another server. */
export async function startServer(size, upstream) {
  const child = start('server.js', JSON.stringify({ ...size, upstream: upstream?.address }))
  const { address } = await message(child, 'address')
  return { child, address }
}

/** A process with nodes that know the state of the cluster, and are not connected yet. */
export async function makeNodes(size, { first, count }) {
  const swarm = start('../core/herd-watchers.js', size.services, size.endpoints, size.nodes, first)
  await message(swarm, 'ready')
  swarm.send({ make: count })
  await message(swarm, 'made')
  return swarm
}

/** Plain sockets instead of a core and its nodes: what the kernel and Node cost. */
export async function startBare(count) {
  const [child, swarm] = [start('bare.js', 'server'), start('bare.js', 'nodes')]
  const [{ address }] = await Promise.all([message(child, 'address'), message(swarm, 'ready')])
  swarm.send({ make: count })
  await message(swarm, 'made')
  return { server: { child, address }, swarm, count }
}

/** All nodes of a group connect to its server, and have what they need. */
export async function come({ server, swarm }) {
  const all = message(swarm, 'all')
  swarm.send({ come: { server: server.address } })
  return all
}

export async function leave({ swarm }) {
  const left = message(swarm, 'left')
  swarm.send({ leave: true })
  await left
}

export async function report({ child }, kind = 'cpu') {
  const answer = message(child, 'cpuMs')
  child.send({ report: kind })
  return answer
}

/** Makes a change, and waits until every node has been told: milliseconds from the change, and the CPU time of the nodes. */
export async function change(core, groups, what) {
  // The requests of all nodes must be on their servers.
  await sleep(300)
  for (const { swarm } of groups) swarm.send({ expect: true })
  await sleep(50)
  const servers = new Set([core, ...groups.map(({ server }) => server)])
  for (const server of servers) await report(server)
  const all = Promise.all(groups.map(({ swarm }) => message(swarm, 'all')))
  const changed = message(core.child, 'changed')
  core.child.send(what)
  const { at } = await changed
  const done = await all
  const costs = []
  for (const server of servers) costs.push(await report(server))
  return {
    ms: Math.max(...done.map((one) => one.all)) - at,
    cpuMs: Math.max(...costs.map((cost) => cost.cpuMs)),
    pauseMs: Math.max(...costs.map((cost) => cost.pauseMs)),
    ownMs: Math.max(...costs.map((cost) => cost.ownMs)),
    nodesCpuMs: done.reduce((sum, one) => sum + one.cpuMs, 0),
  }
}
