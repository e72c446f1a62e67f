// One endpoint changes in a service that has one endpoint per node, with hints that keep each node's traffic on the node (PreferSameNode, as
// for node-local DNS) and without any. Both are measured in turns, so that what else the machine does hits both alike. See README.md.
import { parseArgs } from 'node:util'
import { create } from '@bufbuild/protobuf'
import { globalv1, localv1 } from '@kpng/api'
import { conditionsOf, none, Store } from '@kpng/core/store'
import { View } from '@kpng/core/view'
import { NodeItems } from '../../core/dist/sinks/api/node-items.js'

const { values } = parseArgs({
  options: { nodes: { type: 'string', default: '1000' }, changes: { type: 'string', default: '50' } },
})
const nodes = Number(values.nodes)
const changes = Number(values.changes)
const ports = [{ name: 'dns', port: 53 }]

function cluster(hinted) {
  const store = new Store()
  const endpoint = (index, generation = 0) => ({
    podName: `dns-${index}`,
    hostname: '',
    v4: [`10.${generation % 250}.${index >> 8}.${index & 255}`],
    v6: none,
    ports,
    node: `node-${index}`,
    zone: '',
    hints: hinted ? { zones: none, nodes: [`node-${index}`] } : undefined,
    conditions: conditionsOf(),
  })
  const slices = Array.from({ length: Math.ceil(nodes / 100) }, (_, slice) =>
    Array.from({ length: Math.min(100, nodes - slice * 100) }, (_, index) => endpoint(slice * 100 + index)),
  )
  const write = (tx, slice) =>
    tx.setEndpoints({ namespace: 'default', name: `dns-${slice}`, service: 'dns', endpoints: slices[slice] })
  store.update((tx) => {
    for (let node = 0; node < nodes; node++) tx.setNode(create(globalv1.NodeSchema, { name: `node-${node}` }))
    const ips = { clusterIps: { v4: ['10.96.0.10'] }, externalIps: {} }
    const servicePorts = [{ name: 'dns', protocol: localv1.Protocol.UDP, port: 53, targetPort: 53 }]
    tx.setService(create(localv1.ServiceSchema, { namespace: 'default', name: 'dns', ips, ports: servicePorts }))
    for (const slice of slices.keys()) write(tx, slice)
    tx.setSynced('services', 'endpoints', 'nodes')
  })
  const items = new NodeItems(new View(store))
  const watches = Array.from({ length: nodes }, (_, node) => items.watch({ nodeName: `node-${node}` }))
  for (const watch of watches) for (const item of watch.poll().sets) item.encode()
  /** Milliseconds until all watchers know of the change. */
  return (change) => {
    const slice = change % slices.length
    const index = change % slices[slice].length
    slices[slice] = slices[slice].with(index, endpoint(slice * 100 + index, change + 1))
    store.update((tx) => write(tx, slice))
    const began = performance.now()
    for (const watch of watches) watch.poll()
    return performance.now() - began
  }
}

const median = (times) => times.sort((a, b) => a - b)[times.length >> 1]
const plain = cluster(false)
const hinted = cluster(true)
const times = { plain: [], hinted: [] }
for (let change = 0; change < changes + 5; change++) {
  const [without, withHints] = [plain(change), hinted(change)]
  if (change < 5) continue // warm-up
  times.plain.push(without)
  times.hinted.push(withHints)
}
const [without, withHints] = [median(times.plain), median(times.hinted)]
console.log(
  `${nodes} nodes × ${nodes} endpoints, one changed: ${without.toFixed(1)} ms without hints, ${withHints.toFixed(1)} ms with node hints: × ${(withHints / without).toFixed(2)}`,
)
