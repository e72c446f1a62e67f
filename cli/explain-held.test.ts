import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { iptablesRules, nftablesRules } from '../node/kube-proxy-held/testing/rules.js'
import { Commands } from './testing/commands.js'
import { NetworkNamespace, whySkipped } from './testing/network-namespace.js'

// `kpng explain --held kube-proxy` as users run it, in a network namespace with rules of kube-proxy that are written by hand.

const why = whySkipped('kpng explain --held kube-proxy', ['iptables-nft', 'nft'])

const service = (name: string, spec: object, status = {}) => ({
  ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'default' }, spec, status },
})
const slice = (name: string, port: object, ...endpoints: (readonly [ip: string, node: string])[]) => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: `${name}-1`, namespace: 'default', labels: { 'kubernetes.io/service-name': name } },
  addressType: 'IPv4',
  ports: [port],
  endpoints: endpoints.map(([ip, nodeName]) => ({ addresses: [ip], nodeName, conditions: { ready: true } })),
})
const http = { name: 'http', port: 8080, protocol: 'TCP' }
const port80 = { name: 'http', port: 80, targetPort: 8080, protocol: 'TCP' }

const objects = [
  { apiVersion: 'v1', kind: 'Node', metadata: { name: 'a' }, spec: {}, status: {} },
  service('web', { type: 'NodePort', clusterIP: '10.96.0.10', ports: [{ ...port80, nodePort: 30080 }] }),
  slice('web', http, ['10.244.1.5', 'a'], ['10.244.2.7', 'b']),
  service(
    'local',
    {
      ...{ type: 'LoadBalancer', clusterIP: '10.96.0.13', externalTrafficPolicy: 'Local', ports: [port80] },
      loadBalancerSourceRanges: ['203.0.113.0/25'],
    },
    { loadBalancer: { ingress: [{ ip: '192.0.2.10' }] } },
  ),
  slice('local', http, ['10.244.2.8', 'b'], ['10.244.3.8', 'c']),
  service('broken', { type: 'ClusterIP', clusterIP: '10.96.0.11', ports: [{ port: 80, protocol: 'TCP' }] }),
  service('forgotten', { type: 'ClusterIP', clusterIP: '10.96.0.99', ports: [port80] }),
  slice('forgotten', http, ['10.244.1.9', 'a']),
]

const namespace = new NetworkNamespace()
const commands = new Commands()
beforeEach(async () => (why === undefined ? await namespace.add() : undefined))
afterEach(async () => {
  await namespace.remove()
  await commands.cleanUp()
})

function explain(what: string, ...flags: string[]) {
  const file = join(commands.folder(), 'objects.json')
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
  const held = ['--held', 'kube-proxy', '--cluster-cidr', '10.244.0.0/16']
  return namespace.kpng(['explain', what, '-i', file, '--node', 'a', ...held, ...flags])
}

describe.skipIf(why !== undefined).each([
  ['nftables', nftablesRules, (rules: string) => namespace.inside('nft', ['-f', '-'], rules)],
  ['iptables', iptablesRules, (rules: string) => namespace.inside('iptables-nft-restore', [], rules)],
])('%s', (mode, rules, load) => {
  test('rules that are right, for each kind of address', () => {
    load(rules)
    for (const [what, frontends] of Object.entries({ web: 2, local: 2, broken: 1 })) {
      const { stdout, stderr } = explain(what)
      expect(stderr).toBe('')
      expect(stdout.split(`kube-proxy (${mode}) holds exactly this.`).length - 1, stdout).toBe(frontends)
      expect(stdout).not.toMatch(/lacks|still has|does not have/)
    }
  })

  test('an endpoint that is missing, one that is gone, and a Service without rules', () => {
    load(rules.replaceAll('10.244.2.7', '10.244.2.66'))
    const { stdout } = explain('10.96.0.10:80')
    expect(stdout).toContain(`kube-proxy (${mode}) does not hold what it should.`)
    expect(stdout).toContain(`✗ kube-proxy (${mode}) lacks 10.244.2.7:8080.`)
    expect(stdout).toContain(`✗ kube-proxy (${mode}) still has 10.244.2.66:8080.`)
    expect(explain('forgotten').stdout).toContain(`✗ kube-proxy (${mode}) does not have it at all.`)
  })

  test('clients that are dropped although they should be refused', () => {
    load(rules.replace(/goto reject-chain/, 'drop').replace(/(-d 10\.96\.0\.11 --dport 80 -j) REJECT/, '$1 DROP'))
    expect(explain('broken').stdout).toContain('✗ Clients from outside should be refused, and are dropped.')
  })
})

test.skipIf(why !== undefined)('without rules of kube-proxy, or without rights, a sentence says so', () => {
  const { stderr, status, stdout } = explain('web')
  expect([status, stdout]).toEqual([3, ''])
  expect(stderr).toMatch(/^kpng: There are no rules of kube-proxy on this machine/)
  const forbidden = namespace.kpng(
    ['explain', 'web', '-i', 'examples/state.yaml', '--node', 'vm-001', '--held', 'kube-proxy'],
    'without rights',
  )
  expect(forbidden.stderr).toMatch(/cannot be read: .*Ask as root/s)
})

test.each([
  [['--held', 'somebody'], /Allowed choices are kpng, kube-proxy/],
  [['--held', '--node', 'a'], /Only the kpng that runs here knows what it holds\. Leave out --held or --node\./],
  [['--held', '--agent-socket', '/nowhere/agent.sock'], /No kpng runs on this machine/],
  [['-i', 'examples/state.yaml', '--held', 'kube-proxy', '--node-name', 'laptop'], /no node "laptop", as this machine/],
])('%j', async (flags, expected) => {
  const { stderr, code } = await commands.run('kpng', 'explain', 'web', ...flags)
  expect(stderr).toMatch(expected)
  expect(code).not.toBe(0)
})
