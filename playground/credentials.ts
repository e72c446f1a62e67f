import { randomBytes, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { writePrivately } from './kubeconfig.js'
import { type Certificate, createAuthority } from './tls/certificates.js'

/** What a client needs to trust the server and to be let in, and what the server shows. */
export interface Credentials {
  caPem: string
  server: Certificate
  token: string
}

/** The names by which the server is known, beside its address. */
export const serverNames = [
  'localhost',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
]
const leastValidMs = 30 * 24 * 60 * 60 * 1000

function create(address: string, token: string | undefined): Credentials {
  const authority = createAuthority('kpng-playground')
  const server = authority.issue('kube-apiserver', [...serverNames, address])
  return { caPem: authority.certPem, server, token: token ?? randomBytes(24).toString('base64url') }
}

function usable({ server }: Credentials, address: string): boolean {
  const certificate = new X509Certificate(server.certPem)
  return certificate.checkIP(address) !== undefined && Date.parse(certificate.validTo) - Date.now() > leastValidMs
}

/** New ones, or those of the file when they still fit: a kubeconfig that somebody has copied goes on working. */
export function credentialsFor(address: string, token: string | undefined, path: string | undefined): Credentials {
  if (path !== undefined && existsSync(path)) {
    try {
      const kept = JSON.parse(readFileSync(path, 'utf8')) as Credentials
      if (usable(kept, address)) return { ...kept, token: token ?? kept.token }
    } catch {
      // Certificates can be made again at any time; a file that does not parse is no reason to stop.
    }
  }
  const credentials = create(address, token)
  if (path !== undefined) writePrivately(path, JSON.stringify(credentials))
  return credentials
}
