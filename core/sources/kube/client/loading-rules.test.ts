import { mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { temporaryFolder } from '../testing/certificates.js'
import { loadConfig } from './loading-rules.js'

const folder = temporaryFolder()
afterAll(folder.remove)

const config = (server: string) =>
  `{current-context: x, clusters: [{name: c, cluster: {server: "${server}"}}], contexts: [{name: x, context: {cluster: c}}]}`

function write(path: string, text: string): string {
  const file = join(folder.path, path)
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, text)
  return file
}

const flag = write('flag', config('https://flag'))
const env = write('env', config('https://env'))
const home = join(write('home/.kube/config', config('https://home')), '../..')
const account = join(write('account/token', 'secret\n'), '..')
const pod = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' }
const nowhere = { home: join(folder.path, 'nowhere'), serviceAccountFolder: join(folder.path, 'nowhere') }

const serverOf = async (options: Parameters<typeof loadConfig>[0]) => (await loadConfig(options)).cluster.server

it('prefers the given kubeconfig, then KUBECONFIG, then the pod, then the home folder', async () => {
  const all = { kubeconfig: flag, env: { ...pod, KUBECONFIG: env }, home, serviceAccountFolder: account }
  const { kubeconfig: _, ...noFlag } = all
  expect(await serverOf(all)).toBe('https://flag')
  expect(await serverOf(noFlag)).toBe('https://env')
  expect(await serverOf({ ...noFlag, env: pod })).toBe('https://10.96.0.1')
  expect(await serverOf({ ...noFlag, env: {} })).toBe('https://home')
  expect(await serverOf({ ...nowhere, env: {}, server: 'http://127.0.0.1:8001' })).toBe('http://127.0.0.1:8001')
})

it('takes several files in KUBECONFIG, of which some may be missing', async () => {
  const files = ['', join(folder.path, 'missing'), env, flag].join(delimiter)
  expect(await serverOf({ env: { KUBECONFIG: files } })).toBe('https://env')
})

it('builds the address of the pod’s API server, also for IPv6, and lets a given server replace it', async () => {
  const six = { ...pod, KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '6443' }
  expect(await loadConfig({ env: six, serviceAccountFolder: account })).toMatchObject({
    cluster: { server: 'https://[fd00::1]:6443', certificateAuthority: { file: join(account, 'ca.crt') } },
    user: { tokenFile: { file: join(account, 'token') } },
  })
  expect(await serverOf({ env: pod, serviceAccountFolder: account, server: 'https://node:6443' })).toBe(
    'https://node:6443',
  )
})

it.each([
  [{ ...nowhere, env: {} }, /No Kubernetes API server is known: KUBECONFIG is not set.*Give a kubeconfig file/],
  [{ kubeconfig: '/nowhere/config' }, /kubeconfig \/nowhere\/config does not exist/],
  [{ env: { KUBECONFIG: '/nowhere/a' } }, /in KUBECONFIG does not exist/],
  [{ kubeconfig: folder.path }, /Cannot read the kubeconfig file/],
  [{ kubeconfig: flag, context: 'y' }, /does not have a context "y"\. Choose a context: x/],
])('says what is missing: %j', async (options, message) => {
  await expect(loadConfig(options)).rejects.toMatchObject({
    name: 'KpngError',
    message: expect.stringMatching(message),
  })
})
