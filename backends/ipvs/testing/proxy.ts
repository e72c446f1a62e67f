import { silentLog } from '@kpng/api'
import { change, endpoint, fullSync, ips, type TestService } from '../../../dataplane/testing/objects.js'
import { addresses, labView, options, services } from '../../nft/testing/cases.js'
import { ipvsBackend } from '../backend.js'

// A proxy as a process of its own, so that it can be killed. Serves the lab's view; with the argument `churn`, endpoints of the Service web
// then come and go without end, and so do other Services.

const view = labView()
const log = { ...silentLog, warn: console.error, error: console.error }
const backend = ipvsBackend({ ...options, nodePortAddresses: ['all'], log, name: 'kpng', drainCheckIntervalMs: 500 })
const web = services.find(({ name }) => name === 'web') as TestService
const pod = (name: 'podA1' | 'podA2' | 'podB1', local: boolean) => endpoint(addresses[name].join(' '), { local })
const rounds = [
  [pod('podA1', true), pod('podB1', false)],
  [pod('podA1', true), pod('podA2', true)],
  [pod('podA2', true), pod('podB1', false)],
]

await backend.setup({ requestFullSync: (reason) => void console.error('drift', reason) })
await backend.sync(view, fullSync)
process.stdout.write('synced\n')
for (let changes = 1; process.argv[2] === 'churn'; changes++) {
  const endpoints = rounds[changes % rounds.length] ?? []
  await backend.sync(view, change(view, 'web', { ...web, endpoints }))
  const other = { name: 'other', ips: { clusterIps: ips(`10.96.200.${changes % 250}`) }, endpoints }
  await backend.sync(view, change(view, 'other', other))
  await new Promise((resolve) => setTimeout(resolve, 20))
  if (changes % 10 === 0) process.stdout.write(`${changes}\n`)
}
// Otherwise nothing keeps the process alive.
setInterval(() => {}, 1_000_000)
