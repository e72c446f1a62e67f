import { expect, test } from 'vitest'
import { endpoint, service } from '../testing/objects.js'
import { selectEndpoints } from './selection.js'

// Most of what selection does is told in stories/*.txt.

test('more than 32 ports work', () => {
  const ports = Array.from({ length: 100 }, (_, i) => ({
    name: `p${i}`,
    protocol: 1,
    port: i + 1,
    targetPortName: `p${i}`,
  }))
  const odd = ports.filter((_, i) => i % 2 === 1).map(({ name, port }) => ({ name, port }))
  const endpoints = [endpoint('10.0.0.1', { ports: odd })]
  const { used, availability } = selectEndpoints(service('web', { ports }), endpoints, { name: 'node-a', zone: '' })
  expect(used).toHaveLength(1)
  expect(availability.map(({ v4 }) => v4)).toEqual(ports.map((_, i) => i % 2 === 1))
})
