import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type CallOptions,
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  credentials,
  type ServiceError,
} from '@grpc/grpc-js'
import type { Log } from '@kpng/api'
import { afterEach } from 'vitest'
import { formatLine } from '../../../../../client/log.js'
import type { Handler } from '../call.js'
import { listen, type Server, type ServerOptions } from '../server.js'

const cleanups: (() => unknown)[] = []

/** Runs after the current test, last registered first. */
export const afterTest = (cleanup: () => unknown) => void cleanups.push(cleanup)

afterEach(async () => {
  while (cleanups.length > 0) await cleanups.pop()?.()
})

/** A log that keeps its lines. */
export class KeptLog implements Log {
  readonly lines: string[] = []
  readonly error: Log['error'] = (message, fields) => void this.lines.push(`E ${formatLine(message, fields)}`)
  readonly warn: Log['warn'] = (message, fields) => void this.lines.push(`W ${formatLine(message, fields)}`)
  readonly info: Log['info'] = (message, fields) => void this.lines.push(`I ${formatLine(message, fields)}`)
  readonly detail: Log['detail'] = (level, message, fields) =>
    void this.lines.push(`${level} ${formatLine(message, fields)}`)
  shows = () => true
}

export interface TestServer extends Server {
  readonly log: KeptLog
  /** What a grpc-js client takes as its target. */
  readonly target: string
  readonly port: number
}

/** A server on a free port of loopback that is closed after the test. */
export async function startServer(
  handlers: Record<string, Handler>,
  options: Partial<Omit<ServerOptions, 'handlers' | 'log'>> = {},
): Promise<TestServer> {
  const log = new KeptLog()
  const server = await listen({
    address: 'tcp://127.0.0.1:0',
    ...options,
    handlers: new Map(Object.entries(handlers)),
    log,
  })
  afterTest(() => server.close(0))
  const target = server.address.replace('tcp://', '')
  return {
    address: server.address,
    stats: server.stats,
    close: (graceMs) => server.close(graceMs),
    log,
    target,
    port: Number(target.split(':').at(-1)),
  }
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'kpng-grpc-'))
  afterTest(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const bytes = (value: Buffer) => value

/** A grpc-js client with a connection of its own, closed after the test. */
export function connect(target: string, secrets: ChannelCredentials = credentials.createInsecure()) {
  const client = new Client(target, secrets, { 'grpc.use_local_subchannel_pool': 1 })
  afterTest(() => client.close())
  return {
    stream: (path: string, options: CallOptions = {}): ClientDuplexStream<Buffer, Buffer> => {
      const call = client.makeBidiStreamRequest(path, bytes, bytes, options)
      call.on('error', () => {})
      return call
    },
    unary: (path: string, message: Buffer, options: CallOptions = {}): Promise<Buffer | undefined> =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest(path, bytes, bytes, message, options, (error: ServiceError | null, value?: Buffer) =>
          error ? reject(error) : resolve(value),
        )
      }),
  }
}

/** How a call ended, as the client sees it. */
export const statusOf = (call: ClientDuplexStream<Buffer, Buffer>): Promise<{ code: number; details: string }> =>
  new Promise((resolve) => call.on('status', resolve))
