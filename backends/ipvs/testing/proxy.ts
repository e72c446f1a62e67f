import { silentLog } from '@kpng/api'
import { change, endpoint, fullSync, ips, type TestService } from '../../../dataplane/testing/objects.js'
import { nftBackend } from '../../nft/backend.js'
import { addresses, labView, options, services } from '../../nft/testing/cases.js'
import { ipvsBackend } from '../backend.js'

// A proxy as a process of its own, so that it can be killed. Serves the lab's view with the backend that the first argument names. Second
// argument: with `churn`, endpoints of the Service web then come and go without end, and so do other Services; with `cleanup`, the rules of the
// backend are removed instead.

const [, , name, order] = process.argv
const log = { ...silentLog, error: console.error }
const backend =
  name === 'nft'
    ? nftBackend({ ...options, log })
    : ipvsBackend({ ...options, nodePortAddresses: ['all'], log, name: 'kpng', drainCheckIntervalMs: 500 })
if (order === 'cleanup') {
  await backend.cleanup()
  process.exit()
}
const view = labView()
const web = services.find((service) => service.name === 'web') as TestService
const pod = (at: 'podA1' | 'podA2' | 'podB1', local: boolean) => endpoint(addresses[at].join(' '), { local })
const rounds = [
  [pod('podA1', true), pod('podB1', false)],
  [pod('podA1', true), pod('podA2', true)],
  [pod('podA2', true), pod('podB1', false)],
]

await backend.setup({ requestFullSync: (reason) => void console.error('drift', reason) })
await backend.sync(view, fullSync)
process.stdout.write('synced\n')
for (let changes = 1; order === 'churn'; changes++) {
  const endpoints = rounds[changes % rounds.length] ?? []
  await backend.sync(view, change(view, 'web', { ...web, endpoints }))
  const other = { name: 'other', ips: { clusterIps: ips(`10.96.200.${changes % 250}`) }, endpoints }
  await backend.sync(view, change(view, 'other', other))
  await new Promise((resolve) => setTimeout(resolve, 20))
}
// Otherwise nothing keeps the process alive.
setInterval(() => {}, 1_000_000)
