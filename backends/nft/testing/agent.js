// Sits in a network namespace of the lab and does what it is told: a JSON object a line in, one a line out.
import { createSocket } from 'node:dgram'
import { connect, createServer } from 'node:net'
import { createInterface } from 'node:readline'

const [, , name] = process.argv

/** Answers every connection and datagram with its own name and the address that it sees the peer under. */
async function listen({ port }) {
  const tcp = createServer((socket) => {
    socket.on('error', () => {})
    socket.write(`${name} ${socket.remoteAddress.replace(/^::ffff:/, '')}\n`)
    socket.on('data', (bytes) => socket.write(bytes))
  })
  await new Promise((resolve, reject) => tcp.on('error', reject).listen({ port, host: '::' }, resolve))
  const udp = createSocket({ type: 'udp6' })
  udp.on('message', (_, peer) => udp.send(`${name} ${peer.address.replace(/^::ffff:/, '')}\n`, peer.port, peer.address))
  await new Promise((resolve, reject) => udp.on('error', reject).bind(port, '::', resolve))
  return {}
}

const refusals = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EACCES']

function askTcp({ to, port, timeoutMs }) {
  return new Promise((resolve) => {
    const socket = connect({ host: to, port })
    const finish = (answer) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(answer)
    }
    const timer = setTimeout(finish, timeoutMs, 'dropped')
    socket.on('data', (bytes) => finish(bytes.toString().trim()))
    socket.on('error', ({ code }) => finish(refusals.includes(code) ? 'rejected' : code))
  })
}

const sockets = new Map()

/** With a `flow`, the same socket, and so the same source port, is used each time. */
function askUdp({ to, port, timeoutMs, flow }) {
  return new Promise((resolve) => {
    const known = flow && sockets.get(flow)
    const socket = known ?? createSocket({ type: to.includes(':') ? 'udp6' : 'udp4' })
    if (flow) sockets.set(flow, socket)
    const finish = (answer) => {
      clearTimeout(timer)
      socket.removeAllListeners('message')
      socket.removeAllListeners('error')
      socket.on('error', () => {})
      if (!flow) socket.close()
      resolve(answer)
    }
    const timer = setTimeout(finish, timeoutMs, 'dropped')
    socket.on('message', (bytes) => finish(bytes.toString().trim()))
    socket.on('error', ({ code }) => finish(refusals.includes(code) ? 'rejected' : code))
    // Only a connected socket is told about refusals.
    if (known) socket.send('?')
    else socket.connect(port, to, (error) => (error ? finish('rejected') : socket.send('?')))
  })
}

const connections = new Map()

/** Opens a connection that stays, and later asks whether it still carries bytes. */
function hold({ id, to, port }) {
  return new Promise((resolve) => {
    const socket = connect({ host: to, port })
    connections.set(id, socket)
    socket.once('data', (bytes) => resolve({ answer: bytes.toString().trim() }))
    socket.on('error', ({ code }) => resolve({ answer: code }))
  })
}

function echo({ id, timeoutMs }) {
  return new Promise((resolve) => {
    const socket = connections.get(id)
    const timer = setTimeout(resolve, timeoutMs, { answer: 'dropped' })
    socket.once('data', (bytes) => {
      clearTimeout(timer)
      resolve({ answer: bytes.toString() })
    })
    socket.write('ping')
  })
}

/** Asks so many times at once. */
async function ask({ protocol = 'tcp', count = 1, ...request }) {
  const one = protocol === 'udp' ? askUdp : askTcp
  return { answers: await Promise.all(Array.from({ length: count }, () => one(request))) }
}

let looping = false
const loop = { sent: 0, failed: [] }

/** Asks again and again until `endLoop`. */
async function startLoop(request) {
  looping = true
  ;(async () => {
    while (looping) {
      const answer = await askTcp(request)
      loop.sent++
      if (!answer.includes(' ')) loop.failed.push(answer)
    }
  })()
  return {}
}

async function endLoop() {
  looping = false
  return loop
}

const operations = { listen, ask, hold, echo, startLoop, endLoop }

for await (const line of createInterface({ input: process.stdin })) {
  const { call, operation, ...request } = JSON.parse(line)
  operations[operation](request).then(
    (result) => process.stdout.write(`${JSON.stringify({ call, ...result })}\n`),
    (error) => process.stdout.write(`${JSON.stringify({ call, error: error.message })}\n`),
  )
}
process.exit(0)
