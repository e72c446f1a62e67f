import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type Playground, startPlayground } from '@kpng/playground'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Commands } from './testing/commands.js'

// `kpng kube` as users run it, against the playground's API server.

const commands = new Commands()
let playground: Playground
beforeEach(async () => {
  playground = await startPlayground({ runPods: false, nodeNames: ['node-a'] })
})
afterEach(async () => {
  await commands.cleanUp()
  await playground.close()
})

function apply(name: string, labels: Record<string, string> = {}, address = '10.1.0.1', spec: object = {}): void {
  playground.objects.apply({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, labels },
    spec: { ports: [{ name: 'http', port: 80 }], ...spec },
  })
  playground.objects.apply({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${name}-1`, labels: { ...labels, 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 }],
    endpoints: [{ addresses: [address], nodeName: 'node-a' }],
  })
}

const kube = (...args: string[]) => commands.start('kpng', 'kube', '--kubeconfig', playground.kubeconfigPath, ...args)
const namesOf = (stdout: string) =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).Service.Name)

describe('kpng kube', () => {
  test('prints what a node should do, and follows the API server', async () => {
    apply('web')
    const json = kube('to-local', 'to-json', '--node-name', 'node-a')
    await json.says('"10.1.0.1"')
    expect(json.stdout).toContain('"Local":true')
    apply('web', {}, '10.1.0.2')
    await json.says('"10.1.0.2"')
  })

  test.each([
    ['its own Node alone, where the view of this node is all that is made of it', ['to-local', 'to-json'], 'node-a'],
    ['all Nodes, where many nodes are served', ['to-api', '--listen', 'tcp://127.0.0.1:0'], undefined],
    ['all Nodes, where the whole state is written', ['to-file', '-o', '-'], undefined],
  ])('watches %s (checklist 7)', async (_, sink, node) => {
    const asked: URL[] = []
    const server = createServer((request, response) => {
      asked.push(new URL(request.url ?? '', 'http://localhost'))
      response.writeHead(503).end()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    commands.start('kpng', 'kube', '--server', url, ...sink, '--node-name', 'node-a')
    const ofNodes = () => asked.find(({ pathname }) => pathname === '/api/v1/nodes')
    await expect.poll(ofNodes, { timeout: 90_000 }).toBeDefined()
    server.close()
    expect(ofNodes()?.searchParams.get('fieldSelector') ?? undefined).toBe(node && `metadata.name=${node}`)
  })

  test('takes the Services of the default proxy, or of the one it is named after', async () => {
    apply('ordinary')
    apply('mine', { 'service.kubernetes.io/service-proxy-name': 'mine' }, '10.1.0.3', { clusterIP: 'None' })
    const [ordinary, mine] = await Promise.all([
      kube('to-local', 'to-json', '--once').finished,
      kube('--service-proxy-name', 'mine', 'to-local', 'to-json', '--once').finished,
    ])
    expect(namesOf(ordinary.stdout)).toEqual(['kubernetes', 'ordinary'])
    expect(namesOf(mine.stdout)).toEqual(['mine'])
    expect(mine.stdout).toContain('"10.1.0.3"')
    expect(mine.stdout).not.toContain('Labels')
  })

  test('passes on the labels that were asked for', async () => {
    apply('web', { app: 'web', 'team/name': 'a', other: 'x' })
    const { stdout } = await kube('--with-service-labels', 'app,team/*', 'to-local', 'to-json', '--once').finished
    expect(JSON.parse(stdout.split('\n').find((line) => line.includes('"web"')) ?? '').Service.Labels).toEqual({
      app: 'web',
      'team/name': 'a',
    })
  })

  test('serves it to many, and counts what it saves', async () => {
    apply('web')
    const server = kube('to-api', '--listen', 'tcp://127.0.0.1:0')
    await server.says('Serving the kpng API')
    const api = /listen="tcp:\/\/([^"]+)"/.exec(server.stderr)?.[1] as string
    const { stdout } = await commands.run('kpng-json', '--api', api, '--node-name', 'node-a', '--once')
    expect(namesOf(stdout)).toEqual(['kubernetes', 'web'])
  })
})

describe('what is wrong is said', () => {
  test.each([
    ['a kubeconfig that is not there', ['--kubeconfig', '/nowhere/config'], /\/nowhere\/config/],
    ['a context that does not exist', ['--context', 'nope'], /nope.*kpng-playground/s],
  ])('%s', async (_, args, expected) => {
    const { code, stderr } = await kube(...args, 'to-local', 'to-json', '--once').finished
    expect(stderr).toMatch(expected)
    expect(code).toBe(1)
  })

  test('a kubeconfig that does not parse', async () => {
    const file = join(commands.folder(), 'config')
    writeFileSync(file, 'clusters: [')
    const { code, stderr } = await commands.run('kpng', 'kube', '--kubeconfig', file, 'to-local', 'to-json')
    expect(stderr).toMatch(/config.*:1:\d+|config.*line 1/)
    expect(code).toBe(1)
  })
})

const kubectl = (() => {
  try {
    execFileSync('kubectl', ['version', '--client'], { stdio: 'pipe' })
    return true
  } catch {
    console.warn('skipped: the playground with kubectl, since there is no kubectl on this machine')
    return false
  }
})()

/** What answers a HTTP request, or the code of the error. */
const answerOf = (host: string, port: number): Promise<string> =>
  fetch(`http://${host}:${port}/`).then(
    (response) => response.text(),
    (error: { cause?: { code?: string } }) => String(error.cause?.code),
  )

test.skipIf(!kubectl)(
  'the playground answers on a Service, and kubectl changes who does',
  { timeout: 300_000 },
  async () => {
    const folder = commands.folder()
    const kubeconfig = join(folder, 'kubeconfig')
    const started = Date.now()
    // Addresses of its own, so that it does not meet a playground that somebody runs on this machine.
    const ranges = ['--service-cidr', '127.98.0.0/16', '--pod-cidr', '127.41.0.0/16']
    const where = ['--kubeconfig', kubeconfig, '--listen', 'tcp://127.0.0.1:0', ...ranges]
    const demo = commands.start('kpng', 'playground', ...where)
    await demo.says(/→ web-/, 90_000)
    const firstAnswerMs = Date.now() - started
    const run = (...args: string[]) =>
      execFileSync('kubectl', ['--kubeconfig', kubeconfig, '--cache-dir', join(folder, 'cache'), ...args], {
        encoding: 'utf8',
      })
    const pods = run('get', 'pods', '-l', 'app=web', '-o', 'name').trim().split('\n')
    expect(pods).toHaveLength(3)
    for (const pod of pods) await demo.says(`→ ${pod.replace('pod/', '')}`)

    run(
      'expose',
      'deployment',
      'web',
      '--name',
      'node-port',
      '--type',
      'NodePort',
      '--port',
      '8081',
      '--target-port',
      '8080',
    )
    const nodePort = Number(run('get', 'service', 'node-port', '-o', 'jsonpath={.spec.ports[0].nodePort}'))
    await expect.poll(() => answerOf('127.0.0.1', nodePort), { timeout: 90_000 }).toMatch(/pod=web-/)
    // Open on one loopback address only. A port that is open on every address would answer here.
    expect(await answerOf('127.0.0.2', nodePort)).toBe('ECONNREFUSED')

    run('scale', 'deployment', 'web', '--replicas', '1')
    run('label', 'service', 'web', 'service.kubernetes.io/service-proxy-name=other')
    await demo.says(/→ nobody: connection refused/)
    run('label', 'service', 'web', 'service.kubernetes.io/service-proxy-name-')
    await demo.says(/connection refused[\s\S]*→ web-/)
    expect(await demo.stop()).toMatchObject({ code: 0 })
    console.log(`playground: first answer after ${firstAnswerMs} ms`)
  },
)
