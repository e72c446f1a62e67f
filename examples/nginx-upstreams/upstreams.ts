import { execFile } from 'node:child_process'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { promisify } from 'node:util'
import {
  type Backend,
  endpointsOfPort,
  KpngError,
  type Log,
  type NodeView,
  protocolOf,
  type ServiceEndpoints,
  servicesInOrder,
} from '@kpng/client'

export interface NginxUpstreamsOptions {
  /** The file with the `upstream` blocks, which your nginx.conf includes. It is replaced, never changed in place. */
  readonly file: string
  /** Where nginx.conf includes the file. `http` takes TCP ports, `stream` also UDP ports. */
  readonly context: 'http' | 'stream'
  /** nginx and its usual arguments, such as `['nginx', '-c', '/etc/nginx/nginx.conf']`. Run without a shell. */
  readonly nginx: readonly [program: string, ...args: string[]]
  readonly log: Log
}

const run = promisify(execFile)

/** Writes an `upstream` block per port of each Service, tests the configuration, and reloads nginx. */
export class NginxUpstreams implements Backend {
  readonly #options: NginxUpstreamsOptions
  /** What nginx was last told to load. Undefined at the start: another process may have ended before its reload. */
  #loaded: string | undefined

  constructor(options: NginxUpstreamsOptions) {
    this.#options = options
  }

  async setup(): Promise<void> {}

  async sync(view: NodeView): Promise<void> {
    const text = upstreams(view, this.#options.context)
    if (text === this.#loaded) return
    await this.#load(text)
    this.#loaded = text
  }

  /** Leaves no upstreams. nginx refuses this while a `proxy_pass` names one of them: then the file stays as it was. */
  async cleanup(): Promise<void> {
    await this.#load(header)
  }

  async close(): Promise<void> {}

  async #load(text: string): Promise<void> {
    const { file, log } = this.#options
    const before = await textOf(file)
    await replace(file, text)
    const refusal = await this.#nginx('-t')
    if (refusal === missing) return log.warn('nginx is not installed; only the file is written', { file })
    if (refusal !== undefined) {
      // nginx must be able to start with the file that is there, whatever happens to this process.
      if (before === undefined) await rm(file)
      else await replace(file, before)
      throw new KpngError('refused', `nginx refuses the new upstreams, so ${file} is as it was before: ${refusal}`)
    }
    const failure = await this.#nginx('-s', 'reload')
    if (failure !== undefined) throw new KpngError('refused', `nginx cannot be reloaded; is it running? ${failure}`)
    log.info('nginx was reloaded', { file })
  }

  /** What nginx says if it fails; undefined if it does not. */
  async #nginx(...args: string[]): Promise<string | undefined> {
    const [program, ...usual] = this.#options.nginx
    try {
      await run(program, [...usual, ...args], { timeout: 30_000 })
      return undefined
    } catch (error) {
      const { code, stderr, message } = error as NodeJS.ErrnoException & { stderr?: string }
      return code === 'ENOENT' ? missing : stderr?.trim() || message
    }
  }
}

const missing = 'not installed'

async function textOf(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** A reader sees the old file or the new one. */
async function replace(file: string, text: string): Promise<void> {
  const temporary = `${file}.new`
  await writeFile(temporary, text)
  await rename(temporary, file)
}

const header = '# Written by nginx-upstreams for kpng. Changes are overwritten.\n'

/** All blocks, in the order of the Services' names. */
export const upstreams = (view: NodeView, context: 'http' | 'stream'): string =>
  header +
  servicesInOrder(view)
    .map((item) => upstreamsOf(item, context))
    .join('')

function upstreamsOf(item: ServiceEndpoints, context: 'http' | 'stream'): string {
  const { namespace, name, ports, sessionAffinity } = item.service
  return ports
    .filter((port) => protocolOf(port) === 'tcp' || (context === 'stream' && protocolOf(port) === 'udp'))
    .map((port) => {
      // nginx is where clients from outside come in, so these are the endpoints for external traffic.
      const servers = endpointsOfPort(item, port)
        .filter(({ scopes }) => scopes.external)
        .flatMap(({ endpoint: { ips }, port }) =>
          [...(ips?.v4 ?? []), ...(ips?.v6 ?? [])].map((ip) => [ip, port] as const),
        )
        .filter(([ip]) => isIP(ip))
        .map(([ip, port]) => `  server ${ip.includes(':') ? `[${ip}]` : ip}:${port};\n`)
      const affinity = sessionAffinity.case === 'clientIp' ? '  hash $remote_addr consistent;\n' : ''
      // nginx takes no empty block. With this one it answers 502, or closes the connection, at once.
      const body = servers.length > 0 ? `${affinity}${servers.join('')}` : '  server 127.0.0.1:1 down; # no endpoints\n'
      return `\nupstream ${upstreamName(namespace, name, port.name || String(port.port))} {\n${body}}\n`
    })
    .join('')
}

/** `default_web_http`. Kubernetes' names have no underscores, so two Services never share one. */
const upstreamName = (...parts: string[]): string => parts.map((part) => part.replace(/[^\w.-]/g, '-')).join('_')
