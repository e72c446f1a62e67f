import { writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type Playground, startPlayground } from '@kpng/playground'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Commands } from './testing/commands.js'

// `kpng doctor` as users run it. The playground is the cluster; its node is not this machine, so only the cluster is checked.

const commands = new Commands()
let playground: Playground
beforeEach(async () => {
  playground = await startPlayground({ runPods: false, nodeNames: ['node-a', 'node-b'] })
})
afterEach(async () => {
  await commands.cleanUp()
  await playground.close()
})

const doctor = (...args: string[]) =>
  commands.run('kpng', 'doctor', '--kubeconfig', playground.kubeconfigPath, '--node', 'node-a', ...args)

function applyService(name: string, spec: object = {}): void {
  playground.objects.apply({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default' },
    spec: { ports: [{ name: 'http', port: 80 }], ...spec },
  })
}

function applySlice(name: string, service: string, ready = true): void {
  playground.objects.apply({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, namespace: 'default', labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 }],
    endpoints: [{ addresses: ['10.1.0.1'], nodeName: 'node-a', conditions: { ready, serving: ready } }],
  })
}

/** Only what is the same in every run. */
const stable = (text: string): string =>
  text
    .replaceAll(playground.kubeconfigPath, '<kubeconfig>')
    .replace(/https:\/\/127\.0\.0\.1:\d+/g, '<server>')
    .replace(/this machine is \S+\./, 'this machine is <here>.')
    .replace(/This node \(.*\)/, 'This node (<here>)')
    .replace(/kpng doctor \d\S*,/, 'kpng doctor <version>,')

describe('kpng doctor on a cluster', () => {
  test('reports planted faults, the worst first, and ends with code 1', async () => {
    applyService('web')
    applySlice('web-1', 'web')
    applyService('empty', { selector: { app: 'empty' } })
    applyService('unready')
    applySlice('unready-1', 'unready', false)
    applySlice('stray-1', 'nobody')
    applyService('first', { externalIPs: ['192.0.2.7'] })
    applySlice('first-1', 'first')
    applyService('second', { externalIPs: ['192.0.2.7'] })
    applySlice('second-1', 'second')
    applyService('waiting', { type: 'LoadBalancer', loadBalancerIP: '192.0.2.9' })
    applySlice('waiting-1', 'waiting')
    const { code, stdout, stderr } = await doctor()
    expect(stderr).toBe('')
    await expect(stable(stdout)).toMatchFileSnapshot('testing/doctor-report.txt')
    expect(code).toBe(1)
  })

  test('ends with code 0 if there is no problem, and gives the same as JSON', async () => {
    applyService('web')
    applySlice('web-1', 'web')
    const { code, stdout } = await doctor('-o', 'json')
    const { sections } = JSON.parse(stdout)
    expect(sections[1].findings.map(({ level }: { level: string }) => level)).not.toContain('problem')
    expect(sections[0].skipped).toEqual([{ check: 'everything', reason: expect.stringContaining('node-a') }])
    expect(code).toBe(0)
  })

  test('a list that is refused is a missing right, and the checks that need it are skipped aloud', async () => {
    playground.faults.failFraction(1, { code: 403, match: /^GET .*\/services/ })
    const { code, stdout } = await doctor()
    expect(stdout).toContain('list services')
    expect(stdout).toMatch(/Services: .*list services \(403\)/)
    expect(code).toBe(1)
  })

  test('a long list is cut', async () => {
    for (let index = 0; index < 12; index++) applyService(`empty-${String(index).padStart(2, '0')}`)
    const { stdout } = await doctor()
    expect(stdout).toContain('Services: no EndpointSlice lists an endpoint.')
    expect(stdout).toMatch(/and \d+ more/)
    expect(stdout).not.toContain('empty-11')
  })

  test('an unknown node is a mistake of usage', async () => {
    const { code, stderr } = await commands.run(
      ...(['kpng', 'doctor', '--kubeconfig', playground.kubeconfigPath, '--node', 'node-x'] as const),
    )
    expect(stderr).toContain('The cluster has no node "node-x". Did you mean node-a?')
    expect(code).toBe(2)
  })

  test('an API server that does not answer is a problem', async () => {
    const folder = commands.folder()
    const path = join(folder, 'config')
    writeFileSync(
      path,
      'apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, cluster: {server: "http://127.0.0.1:9"}}]\n',
    )
    const { code, stdout } = await commands.run('kpng', 'doctor', '--kubeconfig', path, '--node', 'elsewhere')
    expect(stdout).toContain('The API server cannot be asked')
    expect(code).toBe(1)
  })

  test('reads what would change from kube-proxy', async () => {
    applyService('web', { type: 'NodePort' })
    const config = join(commands.folder(), 'config.yaml')
    writeFileSync(
      config,
      'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: ipvs\nipvs: {scheduler: lc, tcpTimeout: 15m}\n',
    )
    const ipvs = await doctor('--migrate-from', 'ipvs', '--config', config)
    expect(ipvs.stdout).toContain('ipvs.scheduler is lc.')
    expect(ipvs.stdout).toContain('ipvs.tcpTimeout is 15m.')
    const iptables = await doctor('--migrate-from', 'iptables', '--config', config)
    expect(iptables.stdout).toContain('They no longer answer on 127.0.0.1.')
    expect(iptables.stdout).not.toContain('ipvs.scheduler')
    const unknown = await doctor('--migrate-from', 'iptables')
    expect(unknown.stdout).toMatch(
      /settings of ipvs: the ConfigMap kube-system\/kube-proxy cannot be read: it does not exist/,
    )
    const missing = await doctor('--migrate-from', 'ipvs', '--config', '/nonexistent/config')
    expect(missing.stderr).toContain('/nonexistent/config')
    expect(missing.code).toBe(3)
  })
})

test('doctor and explain say the same of manifests, before anybody applies them', async () => {
  const path = join(commands.folder(), 'shop.yaml')
  writeFileSync(
    path,
    `apiVersion: v1
kind: Service
metadata: { name: shop }
spec: { clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10], selector: { app: shop }, ports: [{ port: 80, protocol: TCP, targetPort: web }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: shop }
spec: { template: { metadata: { labels: { app: shop } }, spec: { containers: [{ name: a, ports: [{ name: http, containerPort: 80 }] }] } } }
`,
  )
  const found = await commands.run('kpng', 'doctor', '-i', path)
  expect(found.code).toBe(1)
  expect(found.stdout).toContain(
    'KPNG-K004  default/shop: Its targetPort "web" is a name that no container of its pods has.',
  )
  const explained = await commands.run('kpng', 'explain', 'shop', '-i', path)
  expect(explained.stdout).toContain('KPNG-K004  Its targetPort "web" is a name that no container of its pods has.')
  expect(explained.stdout).toContain(`(asked: the file ${path})`)
})

describe('kpng doctor with a server that reviews access', () => {
  let server: Server
  afterEach(() => server.close())

  test('names each missing right, and a clock that differs', async () => {
    server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const body = Buffer.concat(chunks).toString()
        const denied = /"(?:watch|create)"/.test(body)
        response.setHeader('Content-Type', 'application/json')
        response.setHeader('Date', new Date(Date.now() - 3_600_000).toUTCString())
        if (request.url === '/version') response.end('{"gitVersion":"v1.22.3"}')
        else if (request.method === 'POST') response.end(JSON.stringify({ status: { allowed: !denied } }))
        else response.end('{"items":[]}')
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const path = join(commands.folder(), 'config')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    writeFileSync(
      path,
      `apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, cluster: {server: "${url}"}}]\n`,
    )
    const { code, stdout } = await commands.run('kpng', 'doctor', '--kubeconfig', path, '-o', 'json')
    const findings: { what: string; level: string; examples?: string[] }[] = JSON.parse(stdout).sections[1].findings
    expect(findings.map(({ level, what }) => `${level}: ${what}`)).toEqual([
      'warning: The API server is v1.22.3. kpng supports 1.24 or newer.',
      expect.stringMatching(/^problem: This machine's clock is 3(?:599|600|601) s ahead of that of the API server\.$/),
      'problem: This user may not do 3 things that kpng does.',
      'warning: This user may not do 2 things that kpng does.',
    ])
    expect(findings[2]?.examples).toEqual(['watch services', 'watch endpointslices.discovery.k8s.io', 'watch nodes'])
    expect(code).toBe(1)
  })
})
