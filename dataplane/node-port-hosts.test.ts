import { parseCidrs } from '@kpng/api'
import { expect, test } from 'vitest'
import { nodeFacts } from './node.js'
import { nodePortHosts } from './node-port-hosts.js'
import { dataplaneSettings } from './settings.js'
import { thisNode, view } from './testing/objects.js'

const addresses = ['127.0.0.1', '::1', '10.0.0.5', '10.0.0.6', 'fd00::5'].map((ip) => ({ ip }))

test.each([
  [['all'], ['0.0.0.0', '::']],
  [[], ['0.0.0.0', '::']],
  [['primary'], ['10.0.0.5', 'fd00::5']],
  [['10.0.0.0/8'], ['10.0.0.5', '10.0.0.6', '::']],
  [
    ['10.0.0.6/32', 'fd00::/8'],
    ['10.0.0.6', 'fd00::5'],
  ],
  [
    ['primary', '10.0.0.6/32'],
    ['10.0.0.5', '10.0.0.6', 'fd00::5'],
  ],
  [['localhost'], ['127.0.0.1', '::1']],
  [['192.0.2.0/24', 'fd00::/8'], ['fd00::5']],
  [
    ['10.0.0.0/8', '0.0.0.0/0'],
    ['0.0.0.0', '::'],
  ],
])('node ports with nodePortAddresses %j', (nodePortAddresses, hosts) => {
  const state = view([])
  state.node = thisNode({ addresses: ['10.0.0.5', 'fd00::5', '10.0.0.6'] })
  const machine = { families: ['IPv4', 'IPv6'], addresses: [] } as const
  const node = nodeFacts(state, machine, dataplaneSettings({ nodePortAddresses }))
  expect([...nodePortHosts(node, 'IPv4', addresses), ...nodePortHosts(node, 'IPv6', addresses)]).toEqual(hosts)
})

test('an address is listed once, and no address if none is in the ranges', () => {
  const twice = [...addresses, ...addresses]
  const cidrs = { IPv4: parseCidrs(['10.0.0.5/32']), IPv6: [] }
  expect(nodePortHosts({ nodePortCidrs: cidrs }, 'IPv4', twice)).toEqual(['10.0.0.5'])
  expect(nodePortHosts({ nodePortCidrs: cidrs }, 'IPv6', twice)).toEqual([])
})
