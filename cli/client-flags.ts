import type { ClientOptions } from '@kpng/client'
import type { Command } from 'commander'
import { checked, type Flags, given, textFlag } from './context.js'
import { groups } from './help.js'

/** The flags of everything that connects to a kpng server. `prefix` is Go kpng's: `api-client-` for relays, none for nodes. */
export function addClientFlags(command: Command, prefix: '' | 'api-client-'): void {
  command
    .optionsGroup(groups.source)
    .option(
      '--api <addresses>',
      'kpng API: host:port or unix:///path; several, with commas, are tried in order',
      '127.0.0.1:12090',
    )
    .option('--error-delay <duration>', 'how long to wait after an error before the next try', '1s')
    .option('--max-msg-size <bytes>', 'largest gRPC message that is accepted', '4194304')
    .optionsGroup(groups.tls)
    .option(`--${prefix}tls-key <file>`, 'key of the client, PEM')
    .option(`--${prefix}tls-crt <file>`, 'certificate of the client, PEM')
    .option(`--${prefix}tls-ca <file>`, 'certificate of the CA that signed the server, PEM (default: no TLS)')
}

/** The options that those flags stand for. */
export async function clientOptions(flags: Flags, prefix: '' | 'apiClient'): Promise<ClientOptions> {
  const { milliseconds, parseAddresses, readTlsFiles, wholeNumber } = await import('@kpng/client')
  const name = (flag: string) => (prefix === '' ? flag : `${prefix}${flag[0]?.toUpperCase()}${flag.slice(1)}`)
  const tls = {
    ...given('keyFile', textFlag(flags, name('tlsKey'))),
    ...given('certFile', textFlag(flags, name('tlsCrt'))),
    ...given('caFile', textFlag(flags, name('tlsCa'))),
  }
  const withTls = Object.keys(tls).length > 0
  if (withTls) readTlsFiles(tls)
  return {
    api: await checked('--api', () => parseAddresses(textFlag(flags, 'api') ?? '')),
    ...(withTls ? { tls } : {}),
    errorDelayMs: milliseconds('--error-delay', textFlag(flags, 'errorDelay') ?? '1s'),
    maxMessageBytes: wholeNumber('--max-msg-size', textFlag(flags, 'maxMsgSize') ?? ''),
  }
}
