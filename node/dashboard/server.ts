import { readFile } from 'node:fs/promises'
import { createServer as createPlainServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { hostPort, isLoopback, KpngError, type Log, messageOf, parseIp } from '@kpng/api'
import { HttpConnections, type HttpLimits, httpServerOptions, parseCertificates, parsePrivateKey } from '@kpng/api/node'
import { closeServer, hostAndPort } from '../server/listen.js'
import { knownNames, refuseUnknownHosts } from '../server/refusal.js'
import { sendText } from '../server/respond.js'
import { type PageFiles, PageServer } from './page-files.js'
import { readToken, TokenCheck } from './token.js'

/** Where the dashboard is if nobody says. */
export const defaultDashboard = '127.0.0.1:12080'

/** How many further ports are tried if one is taken. */
const furtherPorts = 20

const limits: HttpLimits = {
  maxConnections: 256,
  maxConnectionsPerClient: 128,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 10_000,
  idleTimeoutMs: 30_000,
  // A stream has a pulse every second.
  answerTimeoutMs: 60_000,
  maxBodyBytes: 1024,
  // A page that is cut off comes back by itself.
  mayCutAnswers: true,
}

/** The page loads nothing from elsewhere, runs nothing that is written into it, and cannot be shown inside another page. */
const securityHeaders = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  // The files of the page have their own.
  'Cache-Control': 'no-store',
}

export interface DashboardOptions {
  /** `address:port`. A port that is taken: one of the next 20 is used. 0: any free one. */
  readonly address: string
  /** Answers /v1/…: the agent API. */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void
  /** The page itself. Undefined: this kpng has none, which a sentence says. */
  readonly files: () => Promise<PageFiles | undefined>
  /** PEM files. Together with the token they are required for an address that is not on loopback. */
  readonly tls?: { readonly keyFile: string; readonly certFile: string }
  /** A file with the token that everybody must show. Default: everybody on this machine may look. */
  readonly tokenFile?: string
  /** By its name the machine may be reached too, if the address is not on loopback. */
  readonly nodeName?: string
  readonly log: Log
}

export interface Dashboard {
  /** `http://127.0.0.1:12080/` */
  readonly url: string
  close(): Promise<void>
}

/** Serves the live page and the agent API on a TCP port: read-only, on loopback unless everybody must show a token over TLS. */
export async function startDashboard(options: DashboardOptions): Promise<Dashboard> {
  const { handler, files, tls, tokenFile, nodeName, log } = options
  const { host, port } = checkDashboard(options)
  const token = tokenFile === undefined ? undefined : new TokenCheck(await readToken(tokenFile))
  const material = tls && (await readTls(tls))
  const pages = new PageServer(files)
  // On loopback only this machine's own names are right: others lead here only if somebody made them.
  const refuse = refuseUnknownHosts(
    isLoopback(host) ? undefined : nodeName,
    isLoopback(host) ? allowedNames() : undefined,
  )
  const connections = new HttpConnections(limits)
  const open = () => {
    const server = material
      ? createTlsServer({ ...httpServerOptions(limits), ...material, minVersion: 'TLSv1.2' })
      : createPlainServer(httpServerOptions(limits))
    connections.serve(server, (request, response) => {
      for (const [name, value] of Object.entries(securityHeaders)) response.setHeader(name, value)
      if (material) response.setHeader('Strict-Transport-Security', 'max-age=31536000')
      const problem = refuse(request)
      if (problem !== undefined) return sendText(response, 403, `${problem}\n`)
      const url = urlOf(request)
      if (!url) return sendText(response, 400, 'The path of the request cannot be read.\n')
      if (token && !token.admits(url, request, response)) return
      if (url.pathname.startsWith('/v1/')) return handler(request, response)
      pages.answer(url.pathname, request, response).catch((error) => {
        log.warn('A file of the live page cannot be served', { error: messageOf(error) })
        if (response.headersSent) response.destroy()
        else sendText(response, 500, 'The live page cannot be read. The log of kpng says why.\n')
      })
    })
    return server
  }
  const server = await listenOnFreePort(open, host, port)
  const { port: opened } = server.address() as AddressInfo
  const url = `${tls ? 'https' : 'http'}://${hostPort(host, opened)}/`
  const moved = port !== 0 && opened !== port ? { reason: `port ${port} is in use` } : {}
  log.info('Serving the dashboard', { url, ...moved })
  return { url, close: () => closeServer(server) }
}

/** The address, if the dashboard may be there. The error says what else to give. */
export function checkDashboard(options: Pick<DashboardOptions, 'address' | 'tls' | 'tokenFile'>): {
  readonly host: string
  readonly port: number
} {
  const { address, tls, tokenFile } = options
  const { host: text, port } = hostAndPort(address)
  const host = parseIp(text === 'localhost' ? '127.0.0.1' : text)?.text
  if (host === undefined || !Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new KpngError(
      'usage',
      `--dashboard takes an IP address and a port, such as ${defaultDashboard}, not "${address}".`,
    )
  }
  if (tokenFile !== undefined && !tls) {
    throw new KpngError(
      'usage',
      'A token must not be sent in plain text. Give --dashboard-tls-crt and --dashboard-tls-key as well.',
    )
  }
  if (isLoopback(host) || (tls && tokenFile !== undefined)) return { host, port }
  throw new KpngError(
    'usage',
    `The dashboard shows what is in the cluster, and ${host} can be reached from other machines. Give --dashboard-token-file, --dashboard-tls-crt and --dashboard-tls-key as well, or an address on loopback.`,
  )
}

async function readTls({ keyFile, certFile }: NonNullable<DashboardOptions['tls']>) {
  const read = async (file: string, check: (pem: string) => unknown) => {
    try {
      const pem = await readFile(file, 'utf8')
      check(pem)
      return pem
    } catch (error) {
      throw new KpngError('invalid', `The file ${file} of the dashboard cannot be used: ${messageOf(error)}.`, {
        cause: error,
      })
    }
  }
  const [key, cert] = await Promise.all([read(keyFile, parsePrivateKey), read(certFile, parseCertificates)])
  return { key, cert }
}

/** Names that an operator allows for a server on loopback, for instance behind a proxy. */
const allowedNames = (): readonly string[] =>
  knownNames('', { hostname: '', resolvConf: '', allowed: process.env.KPNG_ALLOWED_HOSTS ?? '' }).filter(
    (name) => !name.startsWith('.svc'),
  )

function urlOf({ url = '/' }: IncomingMessage): URL | undefined {
  try {
    return new URL(url, 'http://dashboard')
  } catch {
    return undefined
  }
}

async function listenOnFreePort(open: () => Server, host: string, port: number): Promise<Server> {
  for (let further = 0; ; further++) {
    const server = open()
    try {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen({ host, port: port + (port === 0 ? 0 : further), ipv6Only: false }, () => {
          server.off('error', reject)
          resolve()
        })
      })
      // A connection that fails is its own matter; without a listener it would end the process.
      server.on('error', () => {})
      return server
    } catch (error) {
      const inUse = (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
      if (inUse && further < furtherPorts && port + further < 65_535) continue
      const tried =
        further === 0 ? `${hostPort(host, port)}` : `${hostPort(host, port)} and the ${further} ports after it`
      throw new KpngError('unavailable', `The dashboard cannot be served on ${tried}: ${messageOf(error)}.`, {
        cause: error,
      })
    }
  }
}
