import { create, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { endpointBytes } from './endpoint-bytes.js'
import * as localv1 from './gen/localv1/api_pb.js'

const text = fc.oneof(
  fc.constantFrom('', 'http', '10.0.0.1', 'fd00::1', 'web-1', 'é', 'a'.repeat(60), 'a'.repeat(61), 'a'.repeat(200)),
  fc.string({ unit: 'grapheme', maxLength: 130 }),
)
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
const scopes = maybe(fc.record({ internal: fc.boolean(), external: fc.boolean(), cluster: fc.boolean() }))
const port = fc.record({
  name: text,
  port: fc.oneof(fc.constantFrom(0, 1, 127, 128, 16_383, 16_384, 65_535, 65_536, -1), fc.integer()),
  scopes,
  protocol: maybe(fc.constantFrom(0, 1, 2, 3)),
})
const endpoint = fc.record({
  hostname: text,
  ips: maybe(fc.record({ v4: fc.array(text, { maxLength: 3 }), v6: fc.array(text, { maxLength: 3 }) })),
  local: fc.boolean(),
  portOverrides: fc.array(port, { maxLength: 10 }),
  scopes,
  conditions: maybe(fc.record({ ready: fc.boolean(), serving: fc.boolean(), terminating: fc.boolean() })),
})

test('the bytes of any endpoint are those of toBinary', () => {
  fc.assert(
    fc.property(endpoint, ({ ips, scopes, conditions, portOverrides, ...rest }) => {
      const message = create(localv1.EndpointSchema, {
        ...rest,
        ...(ips && { ips }),
        ...(scopes && { scopes }),
        ...(conditions && { conditions }),
        portOverrides: portOverrides.map(({ scopes: own, protocol, ...named }) => ({
          ...named,
          ...(own && { scopes: own }),
          ...(protocol !== undefined && { protocol }),
        })),
      })
      expect(Buffer.from(endpointBytes(message)).toString('hex')).toBe(
        Buffer.from(toBinary(localv1.EndpointSchema, message)).toString('hex'),
      )
    }),
    { numRuns: 500 },
  )
})

test('the longest plain endpoint fits', () => {
  const long = 'a'.repeat(60)
  const flags = { ready: true, serving: true, terminating: true }
  const message = create(localv1.EndpointSchema, {
    hostname: long,
    ips: { v4: [long], v6: [long] },
    local: true,
    portOverrides: Array.from({ length: 8 }, () => ({ name: long, port: 65_535, protocol: 3 })),
    scopes: { internal: true, external: true, cluster: true },
    conditions: flags,
  })
  expect(Buffer.compare(endpointBytes(message), toBinary(localv1.EndpointSchema, message))).toBe(0)
})
