// The server behind the proxies. A client's first byte says what it wants: `s` a stream of bytes for as long as it stays,
// `o` one byte and the end, anything else silence.
import { once } from 'node:events'
import { createServer } from 'node:net'

const chunk = Buffer.alloc(65_536)

const serve = (socket) => {
  socket.on('error', () => {})
  socket.once('data', (wish) => {
    if (wish[0] === 0x6f) socket.end('x')
    if (wish[0] !== 0x73) return
    const more = () => {
      while (!socket.destroyed && socket.write(chunk));
    }
    socket.on('drain', more)
    more()
  })
}

// One port for each proxy that is measured: ports that wait after thousands of connections to one are free for another.
for (const port of process.argv.slice(2)) {
  const server = createServer({ noDelay: true }, serve).listen({ port: Number(port), host: '127.0.0.1', backlog: 4096 })
  await once(server, 'listening')
}
process.send('ready')
