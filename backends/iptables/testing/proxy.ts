import { silentLog } from '@kpng/api'
import { change, endpoint, fullSync, ips } from '../../../dataplane/testing/objects.js'
import { labView, options } from '../../nft/testing/cases.js'
import { iptablesBackend } from '../backend.js'
import type { Flavour } from '../flavour.js'

// A proxy as a process of its own, so that it can be killed: serves the lab's view, and then changes other services of it
// without end. Argument: the flavour.

const services = 20
const view = labView()
const backend = iptablesBackend({ ...options, log: silentLog, name: 'kpng', flavour: process.argv[2] as Flavour })

const random = (below: number) => Math.floor(Math.random() * below)

function otherService(index: number) {
  const endpoints = Array.from({ length: random(12) }, (_, at) => endpoint(`10.9.${index}.${at + random(50)}`))
  return { name: `other-${index}`, ips: { clusterIps: ips(`10.96.200.${index}`) }, endpoints }
}

await backend.setup({ requestFullSync: () => {} })
await backend.sync(view, fullSync)
process.stdout.write('synced\n')
for (let changes = 1; ; changes++) {
  const index = random(services)
  await backend.sync(view, change(view, `other-${index}`, random(5) === 0 ? undefined : otherService(index)))
  if (changes % 50 === 0) process.stdout.write(`${changes}\n`)
}
