import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { load, loadAll } from 'js-yaml'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { cases } from '../cases/index.js'
import { copyKubeconfig } from './kubeconfig.js'
import { manifestsFeed } from './manifests.js'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kpng-feed-'))
})
afterEach(() => rm(folder, { recursive: true }))

it('writes manifests that say what the cases say, in one file', async () => {
  const feed = await manifestsFeed(folder)
  const objects = cases.flatMap(({ steps }) => steps[0]?.objects ?? [])
  await feed.apply([], [])
  await feed.apply(objects.slice(1), objects.slice(0, 1))
  const { manifests } = feed.placeholders as { manifests: string }
  expect(await readdir(manifests)).toEqual(['objects.yaml'])
  const read = loadAll(await readFile(join(manifests, 'objects.yaml'), 'utf8'))
  expect(read).toEqual([...objects.slice(1), ...objects.slice(0, 1)].map(plain))
})

const plain = (object: unknown) => JSON.parse(JSON.stringify(object))

const kubeconfig = (server: string) => `
current-context: here
contexts: [{name: here, context: {cluster: one, user: me}}]
clusters: [{name: one, cluster: {server: "${server}", certificate-authority: ca.crt}}]
users: [{name: me, user: {client-key: /abs/key, client-certificate: sub/crt}}]
`

it.each([
  ['https://127.0.0.1:6443', '127.0.0.1', '127.0.0.1', undefined, 'https://127.0.0.1:6443'],
  ['https://10.1.2.3', '10.1.2.3', '10.1.2.3', undefined, 'https://10.1.2.3'],
  ['https://[fd00::9]:6443', 'fd00::9', 'fd00::9', undefined, 'https://[fd00::9]:6443'],
  ['https://api.example.com:6443/x', 'api.example.com', '127.0.0.1', 'api.example.com', 'https://127.0.0.1:6443/x'],
])('copies the kubeconfig of %s', async (url, host, address, serverName, expected) => {
  await mkdir(join(folder, 'in'))
  await writeFile(join(folder, 'in', 'config'), kubeconfig(url))
  const copy = await copyKubeconfig(join(folder, 'in', 'config'), folder)
  expect(copy).toMatchObject({ server: { host, port: url.includes(':6443') ? 6443 : 443 }, address })
  const certificates = { 'client-key': '/abs/key', 'client-certificate': join(folder, 'in', 'sub/crt') }
  const { clusters, users } = load(await readFile(copy.path, 'utf8')) as { clusters: unknown; users: unknown }
  const cluster = { server: expected, 'certificate-authority': join(folder, 'in', 'ca.crt') }
  const named = serverName === undefined ? cluster : { ...cluster, 'tls-server-name': serverName }
  expect(clusters).toEqual([{ name: 'one', cluster: named }])
  expect(users).toEqual([{ name: 'me', user: certificates }])
})

it('says what is wrong with a kubeconfig', async () => {
  await writeFile(join(folder, 'config'), 'current-context: away\ncontexts: []\n')
  await expect(copyKubeconfig(join(folder, 'config'), folder)).rejects.toThrow(/no context "away"/)
  await expect(copyKubeconfig(join(folder, 'none'), folder)).rejects.toThrow(/cannot be read/)
})
