import { connect } from 'node:net'
import { type Explanation, messageOf, type ProbeAnswer } from '@kpng/api'
import { withProbes } from '@kpng/diagnose'

// Connections to the endpoints of an explanation. They are made by the command on the machine of the person who asks, and not by the
// agent: a request to the agent API opens no connection to anything.

export interface ProbeOptions {
  /** Default 1,000, for each endpoint. */
  readonly limitMs?: number
  /** Default 20. */
  readonly most?: number
}

/** Opens a TCP connection to each endpoint that the explanation would use, and adds what it showed. */
export async function probed(
  explanation: Explanation,
  { limitMs = 1000, most = 20 }: ProbeOptions = {},
): Promise<Explanation> {
  const endpoints = [
    ...new Set(
      explanation.frontends
        .filter(({ protocol }) => protocol === 'tcp')
        .flatMap(({ routes }) => routes.flatMap((route) => route.endpoints)),
    ),
  ]
  const probes = await Promise.all(endpoints.slice(0, most).map((endpoint) => probe(endpoint, limitMs)))
  return withProbes(explanation, probes, Math.max(0, endpoints.length - most))
}

const causes: Readonly<Record<string, string>> = {
  ENETUNREACH: 'this machine has no route to it',
  EHOSTUNREACH: 'the network says that there is no such host',
}

function probe(endpoint: string, limitMs: number): Promise<ProbeAnswer> {
  const [, host = '', port = ''] = /^\[?(.*?)\]?:(\d+)$/.exec(endpoint) ?? []
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port), timeout: limitMs })
    const done = (result: ProbeAnswer['result'], what: string) => {
      socket.destroy()
      resolve({ endpoint, result, sentence: `${endpoint} ${what}` })
    }
    socket.once('connect', () => done('connected', 'takes connections.'))
    socket.once('timeout', () => done('no-answer', `does not answer within ${limitMs / 1000} s.`))
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') done('refused', 'refuses connections: nothing listens on the port.')
      else if (error.code === 'ETIMEDOUT') done('no-answer', 'does not answer.')
      else done('unreachable', `cannot be reached: ${causes[error.code ?? ''] ?? messageOf(error)}.`)
    })
  })
}
