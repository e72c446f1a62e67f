import { toBinary } from '@bufbuild/protobuf'
import { globalv1, localv1 } from '@kpng/api'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { keptKeys } from '../../kubernetes/index.js'
import type { FileContent } from './content.js'
import { readContent } from './read.js'

// What is taken of a state file goes to every node: a value that cannot be encoded must not get past the door.

const read = (state: object) =>
  readContent('state.json', JSON.stringify(state), {
    serviceProxyName: '',
    intern: (value) => value,
    keptOfServices: keptKeys(),
    keptOfNodes: keptKeys(),
  })

function encodeAll({ services, endpoints, nodes, serviceCidrs }: FileContent): void {
  for (const service of services) toBinary(localv1.ServiceSchema, service)
  for (const node of nodes) toBinary(globalv1.NodeSchema, node)
  for (const cidr of serviceCidrs) toBinary(localv1.ServiceCIDRSchema, cidr)
  for (const { port } of endpoints.flatMap((source) => source.endpoints.flatMap((endpoint) => endpoint.ports ?? []))) {
    toBinary(localv1.PortNameSchema, { $typeName: 'localv1.PortName', name: '', port })
  }
}

const withAffinity = (timeoutseconds: unknown) => ({
  services: [
    { service: { name: 'good' } },
    { service: { name: 'odd', sessionaffinity: { clientip: { timeoutseconds } } } },
  ],
})

describe('the time that a client sticks to its endpoint', () => {
  it.each([3_000_000_000, 86_401, 1.5, 0, -5])('%s is reported, and the usual one is taken', (seconds) => {
    const content = read(withAffinity(seconds))
    encodeAll(content)
    expect(content.services.map(({ name }) => name)).toEqual(['good', 'odd'])
    expect(content.services[1]?.sessionAffinity.value?.timeoutSeconds).toBe(10_800)
    expect(content.skipped).toEqual([
      {
        object: 'Service default/odd',
        reason: `sessionaffinity.clientip.timeoutseconds is ${seconds}; 1 to 86400 was expected. 10800 is used.`,
      },
    ])
  })

  it.each([
    [60, 60],
    [undefined, 10_800],
    [null, 10_800],
  ])('%s is %i seconds', (given, seconds) => {
    const content = read(withAffinity(given))
    expect(content.services[1]?.sessionAffinity.value?.timeoutSeconds).toBe(seconds)
    expect(content.skipped).toEqual([])
  })
})

it('whatever numbers and empty values a state file has, what is taken of it can be encoded', () => {
  const number = fc.oneof(
    fc.constantFrom(0, -1, 1, 80, 65_535, 65_536, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 1e21, 1.5, null),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
  )
  const texts = fc.dictionary(fc.string({ maxLength: 5 }), fc.option(fc.string({ maxLength: 5 }), { nil: null }))
  fc.assert(
    fc.property(fc.array(number, { minLength: 8, maxLength: 8 }), texts, (numbers, labels) => {
      const [port, nodeport, targetport, protocol, timeoutseconds, healthchecknodeport, other, override] = numbers
      const service = {
        name: 'web',
        labels,
        annotations: labels,
        ports: [{ port, nodeport, targetport, protocol: other }, { port: 80, nodeport: other, protocol }, null],
        sessionaffinity: { clientip: { timeoutseconds } },
        healthchecknodeport,
        ips: { clusterips: { v4: [null, '10.0.0.1'] } },
      }
      const endpoint = {
        endpoint: { ips: { v4: ['10.1.0.1'] }, portoverrides: [{ port: override }, { name: 'b', port }] },
      }
      encodeAll(
        read({
          services: [{ service, endpoints: [endpoint, null] }, null],
          nodes: [{ name: 'node-1', labels, annotations: labels, podcidrs: [null] }],
          servicecidrs: [{ name: 'c', cidrs: [null, '10.0.0.0/8'] }],
        }),
      )
    }),
    { numRuns: 300 },
  )
})
