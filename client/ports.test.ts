import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { localv1 } from '@kpng/api'
import { describe, expect, test } from 'vitest'
import type { ServiceEndpoints } from './backend.js'
import { endpointsOfPort, hasEndpoints, protocolOf } from './ports.js'

const { TCP, UDP } = localv1.Protocol

function item(
  port: MessageInitShape<typeof localv1.PortMappingSchema>,
  endpoints: readonly MessageInitShape<typeof localv1.EndpointSchema>[] = [],
  policy: { internalTrafficToLocal?: boolean; externalTrafficToLocal?: boolean } = {},
): [ServiceEndpoints, localv1.PortMapping] {
  const ports = [{ name: 'http', protocol: TCP, port: 80, targetPort: 8080, ...port }]
  const service = create(localv1.ServiceSchema, { namespace: 'default', name: 'web', ports, ...policy })
  const item = { service, endpoints: endpoints.map((one) => create(localv1.EndpointSchema, one)) }
  return [item, service.ports[0] as localv1.PortMapping]
}

describe('hasEndpoints answers for one family', () => {
  test('and is false for a family without endpoints, though the other has some', () => {
    const [web, port] = item({ servedFamilies: { v4: true } })
    expect(hasEndpoints(web, port, 'IPv4')).toBe(true)
    expect(hasEndpoints(web, port, 'IPv6')).toBe(false)
  })

  test('and is false for both when the message is there and empty', () => {
    const [web, port] = item({ servedFamilies: {} })
    expect([hasEndpoints(web, port, 'IPv4'), hasEndpoints(web, port, 'IPv6')]).toEqual([false, false])
  })

  test('and looks at the endpoints of this node when the server does not say', () => {
    const [web, port] = item({}, [{ ips: { v4: ['10.0.0.1'] } }])
    expect([hasEndpoints(web, port, 'IPv4'), hasEndpoints(web, port, 'IPv6')]).toEqual([true, false])
  })

  test('and the field cannot be taken for the answer: it has another name', () => {
    const [, port] = item({ servedFamilies: {} })
    // @ts-expect-error: an object is always true, so no field may be called this
    expect(port.hasEndpoints).toBeUndefined()
  })

  test('and its number on the wire has not changed', () => {
    const bytes = Uint8Array.of(0x3a, 0x02, 0x08, 0x01)
    const port = fromBinary(localv1.PortMappingSchema, bytes)
    expect(port.servedFamilies).toMatchObject({ v4: true, v6: false })
    expect(toBinary(localv1.PortMappingSchema, port)).toEqual(bytes)
  })
})

describe('endpointsOfPort', () => {
  const scopesOf = (...given: Parameters<typeof item>) => endpointsOfPort(...item(...given)).map(({ scopes }) => scopes)

  test('gives the scopes that the server sent', () => {
    const scopes = { internal: true, external: false, cluster: true }
    expect(scopesOf({}, [{ scopes }])).toMatchObject([scopes])
  })

  test('applies the traffic policies when the server sent none', () => {
    const endpoints = [{ local: true }, { local: false }]
    const policy = { internalTrafficToLocal: true, externalTrafficToLocal: true }
    expect(scopesOf({}, endpoints, policy)).toEqual([
      { internal: true, external: true, cluster: true },
      { internal: false, external: false, cluster: true },
    ])
  })

  test('leaves out an endpoint that has a port of this name with another protocol only', () => {
    const endpoints = [{ portOverrides: [{ name: 'http', port: 1, protocol: UDP }] }]
    expect(endpointsOfPort(...item({}, endpoints))).toEqual([])
  })
})

test.each([
  [1, 'tcp'],
  [2, 'udp'],
  [3, 'sctp'],
  [0, undefined],
  [9, undefined],
])('protocol %i is %s', (protocol, name) => expect(protocolOf({ protocol })).toBe(name))
