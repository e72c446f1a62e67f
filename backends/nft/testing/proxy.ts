import { silentLog } from '@kpng/api'
import { change, endpoint, fullSync, ips } from '../../../dataplane/testing/objects.js'
import { nftBackend } from '../backend.js'
import { labView, options } from './cases.js'

// A proxy as a process of its own, so that it can be killed: serves the lab's view, and then changes other services of it
// without end. Argument: the bit of the packet mark, since another bit is another version of the rules.

const services = 20
const view = labView()
const backend = nftBackend({ ...options, log: silentLog, masqueradeBit: Number(process.argv[2]) })

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
  if (changes % 1000 === 0) process.stdout.write(`${changes}\n`)
  if (changes % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
}
