// What the kernel and Node alone cost: a server that writes a few bytes to each of many plain sockets, and the nodes that read and answer them. No HTTP/2, no gRPC, no view.
// As a server or as nodes, in a process of its own. Told by messages of the parent, as server.js and ../core/herd-watchers.js are.
import { connect, createServer } from 'node:net'

const clock = () => performance.timeOrigin + performance.now()
/** About as long as one changed endpoint, and as the request for the next change. */
const [change, request] = [Buffer.alloc(150), Buffer.alloc(40)]

let cpu = process.cpuUsage()
const cpuMs = () => {
  const { user, system } = process.cpuUsage(cpu)
  return (user + system) / 1000
}

const roles = {
  server() {
    const sockets = new Set()
    const server = createServer({ noDelay: true }, (socket) => {
      sockets.add(socket.on('data', () => {}).on('error', () => {}))
    })
    server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
      process.send({ address: `127.0.0.1:${server.address().port}` })
    })
    process.on('message', ({ change: asked, report }) => {
      if (asked !== undefined) {
        const at = clock()
        for (const socket of sockets) socket.write(change)
        process.send({ changed: 1, at })
      }
      if (report) {
        process.send({ cpuMs: cpuMs(), pauseMs: 0, ownMs: 0 })
        cpu = process.cpuUsage()
      }
    })
  },
  nodes() {
    let [count, missing] = [0, 0]
    const arrived = () => --missing === 0 && process.send({ all: clock(), cpuMs: cpuMs() })
    process.on('message', ({ make, come, expect }) => {
      if (make) process.send({ made: true })
      count ||= make
      if (expect) [missing, cpu] = [count, process.cpuUsage()]
      if (!come) return
      missing = count
      const [host, port] = come.server.split(':')
      for (let node = 0; node < count; node++) {
        const socket = connect({ host, port: Number(port), noDelay: true }, arrived)
        socket.on('data', () => {
          arrived()
          socket.write(request)
        })
      }
    })
    process.send({ ready: true })
  },
}
roles[process.argv[2]]()
process.on('disconnect', () => process.exit())
