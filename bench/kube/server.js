// The API server of the benchmark, in its own process: Services, a Node, and large EndpointSlices like those of a real cluster
// (with managedFields), as a streaming list, from a cache or in pages, and then a change of one endpoint on request.
//
// node server.js <slices> <endpoints per slice> <streaming|cache|pages>
import { createServer } from 'node:http'

const [sliceCount, endpointCount, mode] = [Number(process.argv[2]), Number(process.argv[3]), process.argv[4]]
const slicesPath = '/apis/discovery.k8s.io/v1/endpointslices'
let version = 100_000

const managedFields = [
  {
    manager: 'kube-controller-manager',
    operation: 'Update',
    apiVersion: 'discovery.k8s.io/v1',
    time: '2026-01-01T00:00:00Z',
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:addressType': {}, 'f:endpoints': {}, 'f:metadata': { 'f:labels': { '.': {} } }, 'f:ports': {} },
  },
]

const metadataOf = (name, labels = {}) => ({
  name,
  namespace: 'default',
  uid: `6d1f3b52-0000-4000-8000-${name.padStart(12, '0').slice(-12)}`,
  resourceVersion: String(++version),
  creationTimestamp: '2026-01-01T00:00:00Z',
  labels,
  managedFields,
})

function sliceOf(index, hostname) {
  const service = `service-${index}`
  const endpoints = Array.from({ length: endpointCount }, (_, at) => ({
    addresses: [`10.${(index >> 6) & 255}.${((index & 63) << 2) | (at >> 8)}.${at & 255}`],
    conditions: { ready: true, serving: true, terminating: false },
    nodeName: `node-${(index * 7 + at) % 1000}.cluster.internal`,
    targetRef: {
      kind: 'Pod',
      namespace: 'default',
      name: `${service}-7d9c5b8f4d-${index}-${at}`,
      uid: `0b5d9f1e-${at}`,
    },
    zone: `eu-west-1${'abc'[at % 3]}`,
    ...(at === 0 && hostname && { hostname }),
  }))
  return {
    metadata: {
      ...metadataOf(`${service}-abcde`, {
        'kubernetes.io/service-name': service,
        'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
      }),
      ownerReferences: [{ apiVersion: 'v1', kind: 'Service', name: service, uid: `${index}`, controller: true }],
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints,
  }
}

const serviceOf = (index) => ({
  metadata: metadataOf(`service-${index}`),
  spec: {
    type: 'ClusterIP',
    clusterIP: `172.16.${index >> 8}.${index & 255}`,
    clusterIPs: [`172.16.${index >> 8}.${index & 255}`],
    ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 8080 }],
  },
})

const encoded = (count, make) => Array.from({ length: count }, (_, index) => Buffer.from(JSON.stringify(make(index))))
const collections = {
  [slicesPath]: encoded(sliceCount, sliceOf),
  '/api/v1/services': encoded(sliceCount, serviceOf),
  '/api/v1/nodes': [Buffer.from(JSON.stringify({ metadata: { name: 'node-0', resourceVersion: '1' } }))],
}
const watchers = new Set()

/** Writes and waits where the reader is slower. */
const write = (response, chunk) =>
  new Promise((resolve) => (response.write(chunk) ? resolve() : response.once('drain', resolve)))

const bookmark = () => {
  const metadata = { resourceVersion: String(version), annotations: { 'k8s.io/initial-events-end': 'true' } }
  return `${JSON.stringify({ type: 'BOOKMARK', object: { metadata } })}\n`
}

async function watch(objects, query, response, isSlices) {
  if (query.has('sendInitialEvents') && mode !== 'streaming') {
    const message = 'sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled'
    response.writeHead(422, { 'content-type': 'application/json' }).end(JSON.stringify({ kind: 'Status', message }))
    return
  }
  response.writeHead(200, { 'content-type': 'application/json' })
  response.flushHeaders()
  if (query.has('sendInitialEvents')) {
    for (const object of objects) {
      await write(response, Buffer.concat([Buffer.from('{"type":"ADDED","object":'), object, Buffer.from('}\n')]))
    }
    response.write(bookmark())
  }
  if (isSlices) watchers.add(response)
}

async function list(objects, query, response) {
  const start = Number(query.get('continue') ?? 0)
  // With resourceVersion 0 a watch cache ignores the limit.
  const limit = mode === 'cache' && query.get('resourceVersion') === '0' ? 0 : Number(query.get('limit'))
  const end = start + (limit || objects.length)
  const metadata = { resourceVersion: String(version), ...(end < objects.length && { continue: String(end) }) }
  response.writeHead(200, { 'content-type': 'application/json' })
  response.write(`{"kind":"List","apiVersion":"v1","metadata":${JSON.stringify(metadata)},"items":[`)
  for (let index = start; index < Math.min(end, objects.length); index++) {
    await write(response, index === start ? objects[index] : Buffer.concat([Buffer.from(','), objects[index]]))
  }
  response.end(']}')
}

/** One endpoint of one slice changes; its host name says when the API server sent it. */
function change(query, response) {
  const object = sliceOf(
    Number(query.get('slice')),
    `t-${Math.round((performance.timeOrigin + performance.now()) * 1000)}`,
  )
  for (const watcher of watchers) watcher.write(`${JSON.stringify({ type: 'MODIFIED', object })}\n`)
  response.end('{}')
}

/** The watches are lost, and every slice changes meanwhile. */
function expire(response) {
  collections[slicesPath] = encoded(sliceCount, (index) => sliceOf(index, 'relisted'))
  const status = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' }
  for (const watcher of watchers) watcher.end(`${JSON.stringify({ type: 'ERROR', object: status })}\n`)
  watchers.clear()
  response.end('{}')
}

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost')
  const objects = collections[pathname]
  if (pathname === '/change') change(searchParams, response)
  else if (pathname === '/expire') expire(response)
  else if (!objects) response.writeHead(404, { 'content-type': 'text/plain' }).end('404 page not found\n')
  else if (searchParams.get('watch') === '1') void watch(objects, searchParams, response, pathname === slicesPath)
  else void list(objects, searchParams, response)
})
server.listen(0, '127.0.0.1', () => {
  const bytes = collections[slicesPath].reduce((sum, { length }) => sum + length, 0)
  process.send?.({ url: `http://127.0.0.1:${server.address().port}`, bytes })
})
