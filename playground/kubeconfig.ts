import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

interface KubeconfigContent {
  url: string
  caPem: string
  token: string
}

/** A kubeconfig with one cluster, one user and one context, all called `kpng-playground`. */
function kubeconfigText({ url, caPem, token }: KubeconfigContent): string {
  const name = 'kpng-playground'
  return `apiVersion: v1
kind: Config
clusters:
- name: ${name}
  cluster:
    server: ${url}
    certificate-authority-data: ${Buffer.from(caPem).toString('base64')}
users:
- name: ${name}
  user:
    token: ${token}
contexts:
- name: ${name}
  context:
    cluster: ${name}
    user: ${name}
    namespace: default
current-context: ${name}
`
}

export const writeKubeconfig = (path: string, content: KubeconfigContent): void =>
  writePrivately(path, kubeconfigText(content))

/** Written beside and renamed, so that nobody reads half of it; only its owner may read it, for it holds the token. */
export function writePrivately(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  writeFileSync(`${path}.new`, text, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}
