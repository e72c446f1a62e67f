// The API server of a cluster of any size, in the network namespace that the parent started it in. Told by messages:
// { change: service } gives the first endpoint of a service another address; { waitSynced, after } waits for the proxy's first sync
// after a Unix time in milliseconds.
import { get } from 'node:http'
import { startPlayground } from '@kpng/playground'

const [services, endpoints] = process.argv.slice(2).map(Number)
const playground = await startPlayground({
  runPods: false,
  nodeNames: ['bench'],
  serviceCidrs: ['10.96.0.0/12'],
  changeLogSize: 100_000,
})
const { objects } = playground
const generation = new Map()
let changes = 0

const ip = (first, index) => `${first}.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`

/** As the controller writes it. */
const slice = (service, firstAddress) => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: `svc-${service}-1`, labels: { 'kubernetes.io/service-name': `svc-${service}` } },
  addressType: 'IPv4',
  ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
  endpoints: Array.from({ length: endpoints }, (_, index) => ({
    addresses: [index === 0 && firstAddress ? firstAddress : ip(20, service * endpoints + index)],
    conditions: { ready: true, serving: true, terminating: false },
    nodeName: `node-${(service * endpoints + index) % 500}`,
    targetRef: { kind: 'Pod', namespace: 'default', name: `svc-${service}-5d4f8c7b6-${index}` },
    zone: `zone-${index % 3}`,
  })),
})

for (let service = 0; service < services; service++) {
  objects.apply({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: `svc-${service}` },
    spec: { ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
  })
  objects.apply(slice(service))
}

/** Whether the proxy's health page says that it is ready; true where there is no such page. */
const isReady = () =>
  new Promise((resolve) => {
    const request = get('http://127.0.0.1:10256/readyz', { agent: false, timeout: 500 }, (response) => {
      response.resume()
      resolve(response.statusCode !== 503)
    })
    request.on('timeout', () => request.destroy())
    request.on('error', () => resolve(false))
  })

/** The time of the proxy's last sync of IPv4, as kube-proxy and kpng say it in their metrics; 0 before the first. */
const lastSync = () =>
  new Promise((resolve) => {
    const request = get('http://127.0.0.1:10249/metrics', { agent: false, timeout: 500 }, (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () =>
        resolve(
          Number(/^kubeproxy_sync_proxy_rules_last_timestamp_seconds\{ip_family="IPv4"\} (\S+)/m.exec(text)?.[1] ?? 0),
        ),
      )
    })
    request.on('timeout', () => request.destroy())
    request.on('error', () => resolve(0))
  })

process.on('message', async ({ change, waitSynced, after = 0 }) => {
  if (change !== undefined) {
    const address = ip(21, ++changes)
    generation.set(change, address)
    objects.apply(slice(change, address))
    process.send({ changed: address, at: performance.timeOrigin + performance.now() })
  }
  if (waitSynced) {
    let at = 0
    // The page has the time of the sync, so late questions measure no worse. They cost the proxy milliseconds: so they become rarer.
    for (let pause = 20; at * 1000 <= after; pause = Math.min(1000, pause * 1.2)) {
      // It is asked for only once the proxy says that it has synced.
      if (at > 0 || (await isReady())) at = await lastSync()
      if (at * 1000 <= after) await new Promise((resolve) => setTimeout(resolve, pause))
    }
    process.send({ synced: at * 1000 })
  }
})
process.send({ ready: true, kubeconfig: playground.kubeconfigPath })
