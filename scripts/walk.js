// The files of this repository that one changed endpoint passes: from the line that the API server sends to `Backend.sync`, and
// from `Backend.sync` to the kernel's acknowledgement. Measured with V8's coverage on the second change after a warm-up.
//   node scripts/walk.js core | nft
import { once } from 'node:events'
import { createServer } from 'node:http'
import { Session } from 'node:inspector/promises'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { silentLog } from '@kpng/api'
import { runBackend } from '@kpng/client'
import { changeSetsOf } from '@kpng/core/sinks/local'
import { loadConnection, watchKube } from '@kpng/core/sources/kube'
import { Store } from '@kpng/core/store'
import { root } from './steps.js'

/** Runs something and returns the files in which a function ran meanwhile, without generated code and this script. */
async function filesRunBy(work) {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  await work(async () => {
    const { result } = await session.post('Profiler.takePreciseCoverage')
    session.disconnect()
    const files = result
      .filter(({ url, functions }) => url.startsWith('file:') && functions.some(({ ranges }) => ranges[0].count > 0))
      .map(({ url }) => relative(root, fileURLToPath(url)).replaceAll('\\', '/'))
      .filter((file) => !/^\.\.|node_modules|^scripts\/|^api\/dist\/gen\//.test(file))
    console.log(
      [...new Set(files.map((file) => file.replace('/dist/', '/').replace(/\.js$/, '.ts')))].sort().join('\n'),
    )
  })
}

const objects = (ip) => ({
  services: {
    metadata: { name: 'web', namespace: 'default', resourceVersion: '1' },
    spec: {
      type: 'ClusterIP',
      clusterIP: '10.96.0.1',
      clusterIPs: ['10.96.0.1'],
      ports: [{ name: 'http', port: 80, targetPort: 8080 }],
    },
  },
  endpointslices: {
    metadata: {
      name: 'web-1',
      namespace: 'default',
      resourceVersion: '1',
      labels: { 'kubernetes.io/service-name': 'web' },
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: [
      { addresses: ['10.244.1.1'], nodeName: 'here' },
      { addresses: [ip], nodeName: 'there' },
    ],
  },
  nodes: {
    metadata: { name: 'here', resourceVersion: '1' },
    status: { addresses: [{ type: 'InternalIP', address: '172.30.0.1' }] },
  },
})

/** An API server with one Service. `change` sends another endpoint to who watches. */
async function startApi() {
  const watchers = []
  const watched = new Set()
  let version = 1
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://localhost')
    const resource = pathname.split('/').at(-1)
    const object = objects('10.244.2.1')[resource]
    response.setHeader('content-type', 'application/json')
    if (searchParams.get('sendInitialEvents'))
      response.writeHead(400).end('{"kind":"Status","code":400,"reason":"BadRequest"}')
    else if (!searchParams.get('watch')) {
      const items = object ? [object] : []
      response.end(JSON.stringify({ kind: 'List', metadata: { resourceVersion: '1' }, items }))
    } else {
      response.flushHeaders()
      watched.add(resource)
      if (resource === 'endpointslices') watchers.push(response)
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const change = () => {
    const { endpointslices } = objects(`10.244.2.${++version}`)
    endpointslices.metadata.resourceVersion = String(version)
    for (const watcher of watchers) watcher.write(`${JSON.stringify({ type: 'MODIFIED', object: endpointslices })}\n`)
  }
  /** Services, EndpointSlices, Nodes and ServiceCIDRs. */
  const isWatched = () => watched.size === 4
  return { server, change, isWatched, url: `http://127.0.0.1:${server.address().port}` }
}

/** @param sync called with each sync of a backend */
async function withCluster(sync, drive) {
  const api = await startApi()
  const stop = new AbortController()
  const { signal } = stop
  const store = new Store()
  const connection = await loadConnection({ server: api.url })
  const source = watchKube({ store, log: silentLog, connection, signal, nodeName: 'here' })
  let synced = () => {}
  const nextSync = () =>
    new Promise((resolve) => {
      synced = resolve
    })
  const backend = {
    setup: async () => {},
    sync: async (view, changes) => {
      await sync(view, changes)
      synced()
    },
    cleanup: async () => {},
    close: async () => {},
  }
  const first = nextSync()
  const running = runBackend(backend, { changeSets: changeSetsOf(store), nodeName: 'here', log: silentLog, signal })
  await first
  while (!api.isWatched()) await new Promise((resolve) => setImmediate(resolve))
  const change = async () => {
    const done = nextSync()
    api.change()
    await done
  }
  // The first change after the start does things that no other one does.
  for (let warmUp = 0; warmUp < 3; warmUp++) await change()
  await drive(change)
  stop.abort()
  api.server.closeAllConnections()
  api.server.close()
  await Promise.allSettled([source, running, connection.close()])
}

async function walkCore() {
  let arrived
  await withCluster(
    async () => await arrived?.(),
    (change) =>
      filesRunBy(async (report) => {
        // The coverage is taken inside Backend.sync: nothing after it counts.
        arrived = report
        await change()
        arrived = undefined
      }),
  )
}

async function walkNft() {
  const { nftBackend } = await import('@kpng/backend-nft')
  const nft = nftBackend({ tableName: `kpng-walk-${process.pid}` })
  await nft.setup({ requestFullSync: () => {} })
  let isMeasured = false
  await withCluster(
    async (view, changes) => {
      if (!isMeasured) return await nft.sync(view, changes)
      await filesRunBy(async (report) => {
        await nft.sync(view, changes)
        await report()
      })
    },
    async (change) => {
      isMeasured = true
      await change()
    },
  )
  await nft.cleanup()
}

await (process.argv[2] === 'nft' ? walkNft() : walkCore())
