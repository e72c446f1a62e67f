import type { Explanation, FrontendAnswer, RouteAnswer, ServiceAnswer } from '@kpng/api'
import { expect, test } from 'vitest'
import { liveRow } from '../testing/live-row.js'
import { liveService, MockCluster, type MockService } from '../testing/mock-cluster.js'
import { mockExplanation } from '../testing/mock-explain.js'
import { addressOf, explainCommand, familiesOf, frontendsFor, portsOf } from './frontends.js'
import { isLocalOnly, stepsOf, zonesOf } from './path.js'

const example = new MockCluster(60).services.get('payments/api') as MockService
const explanation = (from: 'pod' | 'outside', knowsAll = true) =>
  mockExplanation(example, from, { canReadBack: true, knowsAll })
const frontendOf = ({ frontends }: Explanation, id: string) =>
  frontends.find((each) => each.id === id) as FrontendAnswer

test.each([
  ['10.96.0.10:80/tcp', { family: 'IPv4', text: '10.96.0.10:80', port: 80, protocol: 'tcp', isNodePort: false }],
  ['[fd00::1]:53/udp', { family: 'IPv6', text: '[fd00::1]:53', port: 53, protocol: 'udp', isNodePort: false }],
  ['IPv6 node port 30080/tcp', { family: 'IPv6', text: 'this node:30080', question: '30080/tcp', isNodePort: true }],
  ['10.96.0.10', { family: 'IPv4', text: '10.96.0.10', port: undefined, protocol: '' }],
  ['fd00::1', { family: 'IPv6', text: 'fd00::1', port: undefined }],
])('reads the address %s', (id, address) => {
  expect(addressOf({ id })).toMatchObject(address)
})

test('families and ports can be chosen, and then addresses', () => {
  const { frontends } = explanation('pod')
  expect(familiesOf(frontends)).toEqual(['IPv4', 'IPv6'])
  expect(portsOf(frontends).map(({ label }) => label)).toEqual(['https 443', 'metrics 9102'])
  expect(frontendsFor(frontends, 'IPv4', 'https').map(({ id }) => id)).toEqual([
    '10.96.13.17:443/tcp',
    'IPv4 node port 31443/tcp',
    '203.0.113.80:443/tcp',
  ])
})

test('a terminal gives the same answer', () => {
  const { frontends } = explanation('pod')
  expect(explainCommand(frontendOf({ frontends } as Explanation, '[fd00:96::d11]:443/tcp'), 'pod', 'a')).toBe(
    "kpng explain '[fd00:96::d11]:443/tcp' --from pod --node a",
  )
})

test('in a playground, the command calls its kpng and names its socket', () => {
  const { frontends } = explanation('pod')
  const hints = [
    { command: 'kubectl get pods', effect: '' },
    { command: 'npx kpng explain web --agent-socket /tmp/x/agent.sock', effect: 'why' },
  ]
  expect(explainCommand(frontendOf({ frontends } as Explanation, '10.96.13.17:443/tcp'), 'pod', '', hints)).toBe(
    'npx kpng explain 10.96.13.17:443/tcp --agent-socket /tmp/x/agent.sock --from pod',
  )
})

/** Every endpoint with its share or the reason why it is not used. */
function reasons(from: 'pod' | 'outside', id: string, knowsAll = true): Record<string, number> {
  const answer = explanation(from, knowsAll)
  const frontend = frontendOf(answer, id)
  const route = frontend.routes[0] as RouteAnswer
  const localOnly = isLocalOnly(frontend, route, liveService(example))
  const counts: Record<string, number> = {}
  for (const { isUsed, reason } of zonesOf(answer, frontend, route, localOnly).flatMap(({ endpoints }) => endpoints)) {
    counts[isUsed ? 'used' : reason] = (counts[isUsed ? 'used' : reason] ?? 0) + 1
  }
  return counts
}

test('each endpoint is used or has a reason, for this path', () => {
  expect(reasons('pod', '10.96.13.17:443/tcp')).toEqual({
    ...{ used: 3, duplicate: 1, 'not ready': 1, terminating: 1, 'hinted to another zone': 6 },
  })
  // A Local policy does not look at hints.
  expect(reasons('outside', '203.0.113.80:443/tcp')).toEqual({
    ...{ used: 2, duplicate: 1, 'not ready': 1, terminating: 1, 'on another node': 7 },
  })
})

test('without an answer of the core, only the used ones are known', () => {
  expect(reasons('pod', '10.96.13.17:443/tcp', false)).toEqual({ used: 3 })
})

test('an endpoint without an address of the family says so', () => {
  const answer = explanation('pod')
  const service = answer.service as ServiceAnswer
  const endpoints = service.endpoints.map((endpoint) => ({ ...endpoint, ips: endpoint.ips.slice(0, 1) }))
  const frontend = frontendOf(answer, '[fd00:96::d11]:443/tcp')
  const route = { ...(frontend.routes[0] as RouteAnswer), endpoints: [] }
  const [zone] = zonesOf({ ...answer, service: { ...service, endpoints } }, frontend, route)
  expect(zone?.endpoints.map(({ reason }) => reason)).toContain('no IPv6 address')
})

test('steps are facts and the words of the explanation', () => {
  const answer = explanation('outside')
  const frontend = frontendOf(answer, '203.0.113.80:443/tcp')
  const steps = stepsOf(frontend, frontend.routes[0] as RouteAnswer, liveService(example))
  expect(steps.map(({ title }) => title)).toEqual([
    'externalTrafficPolicy: Local',
    'topology hints',
    'session affinity',
    'source ranges',
    'one of 2, at random',
  ])
})

test.each([
  ['refused', 'A connection from a pod is refused: no endpoint serves it.', 'no endpoint serves it.'],
  ['dropped', 'A connection from a pod is dropped: the policy is Local.', 'the policy is Local.'],
] as const)('a connection that is %s ends there', (outcome, sentence, text) => {
  const route = { from: 'a pod', outcome, sentence, endpoints: [] }
  const frontend: FrontendAnswer = {
    id: '10.96.0.10:80/tcp',
    kind: 'cluster IP',
    service: 'a/b',
    portName: '',
    routes: [route],
    notes: [],
  }
  expect(stepsOf(frontend, route, liveRow('a/b')).at(-1)).toEqual({ title: outcome, text, isLast: true, isStop: true })
})
