// The simulated cluster: servers, and the nodes below them.
import { fork } from 'node:child_process'
import { message, sleep } from '../core/process.js'

const children = new Set()

export function start(file, ...args) {
  const child = fork(new URL(file, import.meta.url).pathname, args.map(String), { execArgv: ['--expose-gc'] })
  child.setMaxListeners(100)
  children.add(child)
  child.on('exit', () => children.delete(child))
  return child
}

export function stopAll() {
  for (const child of children) child.kill()
}

/** A core, or a relay of another server. */
export async function startServer(size, upstream) {
  const child = start('server.js', JSON.stringify({ ...size, upstream: upstream?.address }))
  const { address } = await message(child, 'address')
  return { child, address }
}

/** Nodes of a server: real connections up to a number, the others in the server's process. */
export async function attachNodes(server, size, { first, count, sockets }) {
  const swarm = start('../core/herd-watchers.js', size.services, size.endpoints, size.nodes, first)
  await message(swarm, 'ready')
  swarm.send({ make: sockets })
  await message(swarm, 'made')
  await come({ server, swarm })
  if (count > sockets) {
    const told = message(server.child, 'told')
    server.child.send({ inProcess: { first: first + sockets, count: count - sockets } })
    await told
  }
  return { server, swarm, inProcess: count - sockets }
}

export async function come({ server, swarm }, withPosition = false) {
  const all = message(swarm, 'all')
  swarm.send({ come: { server: server.address, withPosition } })
  return all
}

/** Waits until the requests of all nodes are on their servers, and counts from there. */
export async function expectAll(groups) {
  await sleep(200 + groups.reduce((sum, { inProcess }) => sum + inProcess / 20, 0))
  for (const { server, swarm } of groups) {
    swarm.send({ expect: true })
    server.child.send({ expect: true })
  }
  await sleep(100)
}

/** When the last node of all groups has been told, from now on. */
export function allTold(groups) {
  const waits = groups.flatMap(({ server, swarm, inProcess }) => [
    message(swarm, 'all').then(({ all }) => all),
    ...(inProcess > 0 ? [message(server.child, 'told').then(({ told }) => told)] : []),
  ])
  return Promise.all(waits).then((times) => Math.max(...times))
}

export async function report({ child }, kind = 'cpu') {
  const answer = message(child, 'cpuMs')
  child.send({ report: kind })
  return answer
}

/** Makes a change, and waits until every node has been told: milliseconds from the change. */
export async function change(core, groups, what) {
  await expectAll(groups)
  const all = allTold(groups)
  const changed = message(core.child, 'changed')
  core.child.send({ ...what, fresh: true })
  const { at } = await changed
  return { ms: (await all) - at, at }
}
