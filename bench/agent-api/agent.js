// The process under test: a node agent with a cluster of its own that changes all the time. It serves the agent API on the socket that it
// is told, and says how much CPU time it has used when it is asked.
import { families, silentLog } from '@kpng/api'
import { runBackend } from '@kpng/client'
import { changeSetsOf } from '@kpng/core/sinks/local'
import { serviceFactsOf } from '@kpng/core/view'
import { FrontendTable } from '@kpng/dataplane'
import { Activity, agentApi, serveOnSocket } from '@kpng/node/agent-api'
import { makeCluster } from '../core/cluster.js'

const [path, services, endpoints, perSecond] = [process.argv[2], ...process.argv.slice(3).map(Number)]
const nodeName = 'node-0'
const { store, changeOne } = makeCluster({ services, endpoints, nodes: 100 })
const factsOf = serviceFactsOf(store, nodeName)
const activity = new Activity(Date.now(), factsOf)
const frontends = new FrontendTable()
const { handler } = agentApi({ nodeName, version: 'bench', mode: 'none', activity, frontends, factsOf })
await serveOnSocket(path, handler)

// A data plane that keeps the table and writes nothing: what is measured is the page.
const backend = {
  setup: async () => {},
  sync: async (view, changes) => void frontends.apply(view, changes, { families, addresses: [] }),
  cleanup: async () => {},
  close: async () => {},
}
void runBackend(backend, {
  ...{
    changeSets: changeSetsOf(store),
    nodeName,
    log: silentLog,
    signal: new AbortController().signal,
    withSteps: true,
  },
  onQueued: (changes) => activity.onQueued(changes),
  onSync: (report) => activity.onSync(report),
})

let made = 0
const began = performance.now()
setInterval(() => {
  // As many as are due: timers are late now and then.
  for (const due = ((performance.now() - began) / 1000) * perSecond; made < due; made++) changeOne()
}, 1000 / perSecond)

process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send({ cpuMs: (user + system) / 1000, syncs: activity.counts.syncs, nowMs: performance.now() })
})
process.on('disconnect', () => process.exit())
process.send({ ready: true })
