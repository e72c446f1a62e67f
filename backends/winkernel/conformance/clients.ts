import { createSocket } from 'node:dgram'
import { get } from 'node:http'
import { KpngError } from '@kpng/api'

// Clients that ask a server for its name, each time with a connection of its own. `agnhost netexec` answers them too.

const timeoutMs = 2000

/** The question of a datagram, and the path of a request. */
export const question = 'hostname'

export const askTcp = (host: string, port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const request = get({ host, port, path: `/${question}`, agent: false, timeout: timeoutMs }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part: string) => {
        text += part
      })
      response.on('end', () => resolve(text.trim()))
      response.on('error', reject)
    })
    request.on('timeout', () => request.destroy(noAnswer()))
    request.on('error', reject)
  })

/** A datagram may be lost once. */
export const askUdp = (host: string, port: number): Promise<string> =>
  askUdpOnce(host, port).catch(() => askUdpOnce(host, port))

const askUdpOnce = (host: string, port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = createSocket('udp4')
    const done = (settle: () => void) => {
      clearTimeout(timer)
      socket.close()
      settle()
    }
    const timer = setTimeout(() => done(() => reject(noAnswer())), timeoutMs)
    socket.on('message', (message) => done(() => resolve(message.toString().trim())))
    socket.on('error', (error) => done(() => reject(error)))
    socket.send(question, port, host)
  })

const noAnswer = () => new KpngError('unavailable', `no answer within ${timeoutMs / 1000} s`)
