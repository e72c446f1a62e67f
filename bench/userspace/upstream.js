// The server behind the proxies. A client's first byte says what it wants: `s` a stream of bytes for as long as it stays,
// `o` one byte and the end, anything else silence.
import { createServer } from 'node:net'

const chunk = Buffer.alloc(65_536)

createServer({ noDelay: true }, (socket) => {
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
}).listen({ port: Number(process.argv[2]), host: '127.0.0.1', backlog: 4096 }, () => process.send('ready'))
