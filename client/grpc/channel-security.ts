import type { ChannelCredentials, ChannelOptions } from '@grpc/grpc-js'
import { parseIp } from '@kpng/api'
import { checkServerName } from '@kpng/api/node'
import { readTlsFiles, type TlsFiles } from '../tls.js'

export interface ChannelSecurity {
  readonly credentials: ChannelCredentials
  readonly options: ChannelOptions
}

/**
 * TLS names the server that it wants, and an IP address is no such name: Node warns of it (DEP0123) and will refuse. grpc-js always
 * names one, so this stands for an address. No certificate has it, since the top-level domain `invalid` is nobody's.
 */
const nameForAddresses = 'kpng.invalid'

/** How a connection to a target is secured: without `tls`, not at all. The files are read at each call. */
export async function channelSecurity(target: string, tls: TlsFiles | undefined): Promise<ChannelSecurity> {
  const { credentials } = await import('@grpc/grpc-js')
  if (!tls) return { credentials: credentials.createInsecure(), options: {} }
  const { ca, key, cert } = readTlsFiles(tls)
  const address = addressOf(target)
  if (address === undefined) return { credentials: credentials.createSsl(ca, key, cert), options: {} }
  return {
    // The certificate must name the address that is connected to, whatever name stood for it.
    credentials: credentials.createSsl(ca, key, cert, {
      checkServerIdentity: (_, certificate) => checkServerName(address, certificate),
    }),
    options: { 'grpc.ssl_target_name_override': nameForAddresses },
  }
}

/** The IP address in a target such as `192.0.2.1:80` or `[fe80::1%eth0]:80`, without its zone; undefined for names and sockets. */
export function addressOf(target: string): string | undefined {
  const [, bracketed, plain = ''] = /^(?:\[([^\]]+)\]|([^:]+)):\d+$/.exec(target) ?? []
  const host = (bracketed ?? plain).replace(/%.*$/, '')
  return parseIp(host) ? host : undefined
}
