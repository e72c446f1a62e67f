// One client process: node client.js <what> <port> <seconds> <parallel>. Sends its result to the parent.
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

const [what, ...numbers] = process.argv.slice(2)
const [port, seconds, parallel] = numbers.map(Number)

async function streams() {
  let bytes = 0
  const sockets = []
  for (let i = 0; i < parallel; i++) {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      bytes += chunk.length
    })
    socket.write('s')
    sockets.push(socket)
  }
  await pause(300)
  const [from, started] = [bytes, performance.now()]
  process.send('measuring')
  await pause(seconds * 1000)
  const gigabits = ((bytes - from) * 8) / 1e9 / ((performance.now() - started) / 1000)
  for (const socket of sockets) socket.destroy()
  return { value: gigabits, gigabytes: (bytes - from) / 1e9 }
}

async function connections() {
  let done = 0
  let failed = 0
  const end = performance.now() + seconds * 1000
  process.send('measuring')
  const worker = async () => {
    while (performance.now() < end) {
      const ok = await new Promise((resolve) => {
        const socket = connect({ port, host: '127.0.0.1' })
        socket.on('error', () => resolve(false))
        socket.on('data', () => socket.destroy())
        socket.on('close', (hadError) => resolve(!hadError && socket.bytesRead === 1))
        socket.write('o')
      })
      if (ok) done++
      else failed++
    }
  }
  await Promise.all(Array.from({ length: parallel }, worker))
  return { value: done / seconds, failed }
}

/** Opens connections and holds them; the parent looks at the proxy's memory meanwhile. */
async function idle() {
  let open = 0
  const sockets = []
  let answered = true
  while (answered && sockets.length < parallel) {
    const count = Math.min(100, parallel - sockets.length)
    const batch = Array.from({ length: count }, () => connect({ port, host: '127.0.0.1' }))
    sockets.push(...batch)
    const connected = batch.map(async (socket) => {
      socket.on('error', () => {})
      await once(socket, 'connect')
      open++
      socket.on('close', () => open--)
    })
    // A proxy that has no descriptors left does not answer any more: what it holds by then counts.
    answered = await Promise.race([Promise.allSettled(connected).then(() => true), pause(5000, false)])
  }
  await pause(500)
  process.send({ held: open })
  await once(process, 'message')
  return { value: open }
}

const result = await { streams, connections, idle }[what]()
process.send(result, () => process.exit())
