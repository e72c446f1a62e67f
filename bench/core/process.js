// Processes under test: started from a command line, and what the kernel says of their CPU and memory.
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'

export function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

/** Starts a command line (words separated by spaces), and waits until its port answers. */
export async function start(commandLine, port) {
  const [command, ...args] = commandLine.split(' ').filter(Boolean)
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', process.env.BENCH_LOG ? 'inherit' : 'ignore'] })
  let exited = false
  child.on('exit', () => {
    exited = true
  })
  for (let tries = 0; tries < 600 && !exited; tries++) {
    if (await answers(port)) return child
    await sleep(100)
  }
  throw new Error(
    `"${commandLine}" does not listen on port ${port}. Run it by hand, or set BENCH_LOG=1 to see what it says.`,
  )
}

const answers = (port) =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => resolve(true) || socket.destroy())
    socket.on('error', () => resolve(false))
  })

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** The next message of a child process that has a field. Rejects if the child reports an error or ends before. */
export const message = (child, field) =>
  new Promise((resolve, reject) => {
    const stop = () => {
      child.off('message', listen)
      child.off('exit', ended)
    }
    const ended = (code, signal) => {
      stop()
      reject(new Error(`The process ${child.spawnargs[1]} ended (${signal ?? `exit code ${code}`}) before it was done`))
    }
    const listen = (received) => {
      if (!received.error && !(field in received)) return
      stop()
      if (received.error) reject(new Error(received.error))
      else resolve(received)
    }
    child.on('message', listen)
    child.on('exit', ended)
  })

/** CPU milliseconds that a process, its threads and the commands that it ran to their end have used. */
export function cpuMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * 10
}

export function residentMb(pid) {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Math.round(Number(kilobytes) / 1024)
}

export const threads = (pid) => readdirSync(`/proc/${pid}/task`).length
