import { FrontendTable } from '@kpng/dataplane'
import { describe, expect, test } from 'vitest'
import { change, endpoint, fullSync, ips, type TestService, tcp, udp, view } from '../../dataplane/testing/objects.js'
import type { Operation } from './ipvs-messages.js'
import { type KnownServer, knownAfter, operationsFor } from './operations.js'
import { emptyInput, IpvsState } from './state.js'
import { serverKey } from './virtual-servers.js'

// How many netlink messages a change costs.

const pods = (...numbers: number[]) => numbers.map((number) => endpoint(`10.244.2.${number}`))

const text = (operation: Operation): string => {
  const to = 'destination' in operation ? ` ${operation.destination.ip}:${operation.destination.port}` : ''
  return `${operation.do} ${serverKey(operation.server)}${to}${'weight' in operation ? ` ${operation.weight}` : ''}`
}

/** A node that serves one Service among others, and what a change of it writes. */
function serving(service: TestService) {
  const others = Array.from({ length: 20 }, (_, index) => ({
    ...{ name: `other-${index}`, ips: { clusterIps: ips(`10.96.1.${index}`) }, endpoints: pods(1, 2, 3) },
  }))
  const state = view([...others, service])
  const table = new FrontendTable()
  const machine = { families: ['IPv4'], addresses: [] } as const
  table.apply(state, fullSync, machine)
  const ipvs = new IpvsState(table)
  ipvs.rebuild({ ...emptyInput, nodePortAddresses: { IPv4: ['172.30.0.1', '172.31.0.1'], IPv6: [] } })
  const known = new Map<string, KnownServer>()
  const write = (key: string) => {
    const wanted = ipvs.servers.get(key)
    if (!wanted) return []
    const { operations, retired } = operationsFor(wanted, known.get(key))
    known.set(key, knownAfter(wanted, known.get(key), retired))
    return operations.map(text)
  }
  for (const key of ipvs.servers.keys()) write(key)
  return (after: TestService) => {
    const { frontends } = table.apply(state, change(state, service.name, after), machine)
    const update = ipvs.change(frontends.flatMap((each) => [each.before, each.after].flatMap((one) => one?.id ?? [])))
    return {
      messages: update.servers.flatMap(({ key }) => write(key)),
      rules: update.elements.IPv4.add.length + update.elements.IPv4.remove.length,
    }
  }
}

const web = (more: Partial<TestService> = {}): TestService => ({
  ...{ name: 'web', ips: { clusterIps: ips('10.96.0.1') }, endpoints: pods(1, 2) },
  ...more,
})

describe('one netlink message per virtual server, and no rule changes:', () => {
  const at = '10.96.0.1:80/tcp'

  test('an endpoint is added', () => {
    expect(serving(web())(web({ endpoints: pods(1, 2, 3) }))).toEqual({
      messages: [`newDest ${at} 10.244.2.3:8080 1`],
      rules: 0,
    })
  })

  test('an endpoint goes, and comes back before its connections have ended', () => {
    const apply = serving(web())
    expect(apply(web({ endpoints: pods(1) }))).toEqual({ messages: [`setDest ${at} 10.244.2.2:8080 0`], rules: 0 })
    expect(apply(web({ endpoints: pods(1, 2) }))).toEqual({ messages: [`setDest ${at} 10.244.2.2:8080 1`], rules: 0 })
  })

  test('a UDP endpoint goes: at once, because its clients would stay', () => {
    const dns = (endpoints: TestService['endpoints']) => web({ ports: [udp(53)], ...(endpoints && { endpoints }) })
    expect(serving(dns(pods(1, 2)))(dns(pods(1)))).toEqual({
      messages: ['deleteDest 10.96.0.1:53/udp 10.244.2.2:8080'],
      rules: 0,
    })
  })

  test('a UDP endpoint that drains keeps its clients', () => {
    const draining = endpoint('10.244.2.2', { scopes: [] })
    const apply = serving(web({ ports: [udp(53)] }))
    expect(apply(web({ ports: [udp(53)], endpoints: [...pods(1), draining] })).messages).toEqual([
      'setDest 10.96.0.1:53/udp 10.244.2.2:8080 0',
    ])
    expect(apply(web({ ports: [udp(53)], endpoints: pods(1) })).messages).toEqual([
      'deleteDest 10.96.0.1:53/udp 10.244.2.2:8080',
    ])
  })

  test('a UDP client outside stays with an endpoint of another node when the policy becomes Local', () => {
    const exposed = (more: Partial<TestService>) =>
      web({ ports: [udp(53)], ips: { externalIps: ips('198.51.100.1') }, endpoints: pods(1, 2), ...more })
    const elsewhere = endpoint('10.244.2.2', { scopes: ['internal', 'cluster'] })
    const local = exposed({ externalTrafficToLocal: true, endpoints: [...pods(1), elsewhere] })
    expect(serving(exposed({}))(local).messages).toContain('setDest 198.51.100.1:53/udp 10.244.2.2:8080 0')
  })

  test('a node port has a virtual server at each address of the node', () => {
    const exposed = (endpoints: TestService['endpoints']) =>
      web({ ports: [tcp(80, { nodePort: 30_080 })], ...(endpoints && { endpoints }) })
    expect(serving(exposed(pods(1)))(exposed(pods(1, 2))).messages).toEqual([
      'newDest 10.96.0.1:80/tcp 10.244.2.2:8080 1',
      'newDest 172.30.0.1:30080/tcp 10.244.2.2:8080 1',
      'newDest 172.31.0.1:30080/tcp 10.244.2.2:8080 1',
    ])
  })

  test('session affinity is switched on', () => {
    const sticky = { sessionAffinity: { case: 'clientIp' as const, value: { timeoutSeconds: 60 } } }
    expect(serving(web())(web(sticky as Partial<TestService>))).toEqual({ messages: [`setService ${at}`], rules: 0 })
  })
})
