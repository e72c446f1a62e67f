import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { type AgentSocket, serveOnSocket } from '@kpng/node/agent-api'
import { type Playground, startPlayground } from '@kpng/playground'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Commands } from './testing/commands.js'

// `kpng bundle` as users run it, unpacked with tar. Secrets are planted wherever kpng might pick them up.

const planted = { environment: 'planted-environment-1', log: 'planted-log-2', kubeconfig: 'planted-kubeconfig-3' }
const answers: Record<string, object> = {
  '/v1/status': { version: '0.1.0', node: hostname(), problems: [] },
  '/v1/services': { services: [{ namespace: 'shop', name: 'checkout', clusterIps: ['10.96.0.77'] }] },
  '/v1/endpoints': { endpoints: [{ namespace: 'shop', service: 'checkout', ips: ['10.244.1.9'], hostname: '' }] },
  '/v1/frontends': { frontends: [{ id: '10.96.0.77:80/tcp', service: 'shop/checkout' }] },
  '/v1/changes': { changes: [] },
}

const commands = new Commands()
let playground: Playground
let agent: AgentSocket
let folder: string
let socket: string
let env: NodeJS.ProcessEnv

beforeEach(async () => {
  folder = commands.folder()
  playground = await startPlayground({ runPods: false, nodeNames: ['node-a'], token: planted.kubeconfig })
  socket = join(folder, 'agent.sock')
  agent = await serveOnSocket(socket, ({ url = '' }, response) => response.end(JSON.stringify(answers[url] ?? {})))
  const programs = join(folder, 'programs')
  mkdirSync(programs)
  const line = `W1 Skipped object="Service shop/checkout" header="Authorization: Bearer ${planted.log}"`
  writeFileSync(join(programs, 'journalctl'), `#!/bin/sh\necho '${line}'\n`)
  chmodSync(join(programs, 'journalctl'), 0o755)
  env = { PATH: `${programs}:${process.env.PATH}`, MY_SECRET: planted.environment, KUBE_TOKEN: planted.environment }
})
afterEach(async () => {
  await commands.cleanUp()
  await agent.close()
  await playground.close()
})

const bundle = (file: string, ...args: string[]) =>
  commands.startWith(
    env,
    ...(['kpng', 'bundle', '-o', file, '--kubeconfig', playground.kubeconfigPath, '--node-name', 'node-a'] as const),
    ...['--agent-socket', socket, ...args],
  ).finished

/** The files of an archive, by path. */
function unpacked(file: string): Map<string, string> {
  const target = join(folder, 'unpacked')
  mkdirSync(target)
  execFileSync('tar', ['xzf', file, '-C', target])
  const paths = readdirSync(target, { recursive: true, encoding: 'utf8' })
  return new Map(
    paths
      .filter((path) => statSync(join(target, path)).isFile())
      .map((path) => [path.replace('kpng-bundle/', ''), readFileSync(join(target, path), 'utf8')]),
  )
}

test('holds what an agent, the doctor and the system say, and no secret', async () => {
  const file = join(folder, 'a.tar.gz')
  const { code, stdout, stderr } = await bundle(file)
  expect(stderr).toBe('')
  expect(code).toBe(0)
  expect(stdout).toContain(`Wrote ${file}`)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const files = unpacked(file)
  expect([...files.keys()]).toEqual(
    expect.arrayContaining([
      ...['README.txt', 'versions.json', 'doctor.txt', 'doctor.json', 'sysctls.txt', 'environment.txt'],
      ...['agent/status.json', 'agent/services.json', 'agent/frontends.json', 'agent/changes.json', 'logs/kpng.txt'],
    ]),
  )
  expect(files.get('agent/services.json')).toContain('checkout')
  expect(files.get('logs/kpng.txt')).toContain('Service shop/checkout')
  expect(files.get('doctor.txt')).toContain('The cluster, as node node-a sees it')
  expect(files.get('README.txt')).toContain('metrics.txt: nobody answers on 127.0.0.1:10249')
  for (const [path, text] of files) {
    for (const secret of Object.values(planted)) expect(text.includes(secret), `${secret} in ${path}`).toBe(false)
  }
})

test('hashes names and addresses in all files, the same ones alike', async () => {
  const file = join(folder, 'b.tar.gz')
  expect((await bundle(file, '--hash-names')).code).toBe(0)
  const files = unpacked(file)
  for (const [path, text] of files) {
    expect(text.match(/shop|checkout|node-a|10\.96\.0\.77|10\.244\.1\.9/g), path).toBeNull()
  }
  const name = /"name": "(name-\w+)"/.exec(files.get('agent/services.json') ?? '')?.[1] ?? 'none'
  expect(files.get('logs/kpng.txt')).toContain(name)
  expect(files.get('agent/frontends.json')).toContain(name)
})

test('hashes names that only the cluster knows', async () => {
  playground.objects.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'treasury' } })
  playground.objects.apply({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'vault', namespace: 'treasury' },
    spec: { selector: { app: 'vault' }, ports: [{ port: 80 }] },
  })
  await agent.close()
  const file = join(folder, 'd.tar.gz')
  expect((await bundle(file, '--hash-names')).code).toBe(0)
  const files = unpacked(file)
  expect(files.get('doctor.txt')).toContain('matches no pod in the namespace name-')
  for (const [path, text] of files) expect(text.match(/treasury|vault|node-a/g), path).toBeNull()
})

test('says what is wrong with an output that cannot be written, before anything is read', async () => {
  const { code, stderr } = await bundle('/nonexistent/a.tar.gz')
  expect(stderr).toContain('The bundle /nonexistent/a.tar.gz cannot be written')
  expect(code).toBe(1)
})

test('without an agent it holds the rest, and says what is missing', async () => {
  await agent.close()
  const file = join(folder, 'c.tar.gz')
  const { code, stdout } = await bundle(file)
  expect(code).toBe(0)
  expect(stdout).toContain('Not in it: agent/status.json')
  expect(unpacked(file).get('README.txt')).toContain('agent/status.json: The agent API on')
})
