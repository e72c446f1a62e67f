import { create } from '@bufbuild/protobuf'
import { globalv1 } from '@kpng/api'
import { expect, it } from 'vitest'
import { keyFilter } from './globs.js'
import { nodeFromKubernetes } from './node.js'

const kept = { labels: keyFilter(['kubernetes.io/*']), annotations: keyFilter([]) }

function read(object: object) {
  const reasons: string[] = []
  return { node: nodeFromKubernetes(object, kept, (reason) => reasons.push(reason)), reasons }
}

it('maps a node (checklist 7, 8)', () => {
  const { node, reasons } = read({
    metadata: {
      name: 'node-1',
      labels: { 'topology.kubernetes.io/zone': 'a', 'kubernetes.io/hostname': 'host' },
      annotations: { x: 'y' },
    },
    spec: { podCIDR: '10.244.1.0/24', podCIDRs: ['10.244.1.0/24', 'FD00:1::/64'] },
    status: {
      addresses: [
        { type: 'Hostname', address: 'host' },
        { type: 'ExternalIP', address: '1.1.1.1' },
        { type: 'InternalIP', address: '192.168.0.1' },
        { type: 'InternalIP', address: 'FD00::1' },
        { type: 'ExternalIP', address: '192.168.0.1' },
      ],
    },
  })
  expect(node).toEqual(
    create(globalv1.NodeSchema, {
      name: 'node-1',
      labels: { 'kubernetes.io/hostname': 'host' },
      topology: { node: 'node-1', zone: 'a' },
      addresses: ['192.168.0.1', 'fd00::1', '1.1.1.1'],
      podCidrs: ['10.244.1.0/24', 'fd00:1::/64'],
    }),
  )
  expect(reasons).toEqual([])
})

it('a bare node has a topology with its own name', () => {
  expect(read({ metadata: { name: 'node-1' } }).node?.topology).toMatchObject({ node: 'node-1', zone: '' })
})

it('takes podCIDR where podCIDRs is missing', () => {
  expect(read({ metadata: { name: 'n' }, spec: { podCIDR: '10.1.0.0/16' } }).node?.podCidrs).toEqual(['10.1.0.0/16'])
})

it.each([
  ['nothing', {}, {}, false],
  ['deletionTimestamp', { deletionTimestamp: '2026-01-01T00:00:00Z' }, {}, true],
  ['the autoscaler taint', {}, { taints: [{ key: 'other' }, { key: 'ToBeDeletedByClusterAutoscaler' }] }, true],
  ['another taint', {}, { taints: [{ key: 'node.kubernetes.io/unschedulable' }] }, false],
])('deleting (checklist 71): %s', (_, metadata, spec, deleting) => {
  expect(read({ metadata: { name: 'n', ...metadata }, spec }).node?.deleting).toBe(deleting)
})

it('bad addresses and networks cost only themselves (checklist 11)', () => {
  const { node, reasons } = read({
    metadata: { name: 'n' },
    spec: { podCIDRs: ['10.1.0.0', '10.2.0.0/16'], taints: 'x' },
    status: {
      addresses: [
        { type: 'InternalIP', address: 'x' },
        { type: 'InternalIP', address: '10.0.0.1' },
      ],
    },
  })
  expect(node).toMatchObject({ addresses: ['10.0.0.1'], podCidrs: ['10.2.0.0/16'] })
  expect(reasons).toHaveLength(3)
})

it('a node without a name is left out', () => {
  const { node, reasons } = read({ metadata: {} })
  expect(node).toBeUndefined()
  expect(reasons).toHaveLength(1)
})
