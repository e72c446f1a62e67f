// A cluster for the commands of documents: run inside a network namespace, it writes a kubeconfig and serves until it is
// stopped. Each line on standard input makes it start over.
import { startPlayground } from '@kpng/playground'

const [kubeconfigPath] = process.argv.slice(2)

const playground = await startPlayground({
  kubeconfigPath,
  nodeNames: ['worker-1', 'vm-001'],
  zones: { 'worker-1': 'zone-a', 'vm-001': 'zone-b' },
  serviceCidrs: ['10.96.0.0/16'],
  // Addresses as in a real cluster: nftables does not serve endpoints on loopback. Nobody listens there.
  podCidr: '10.244.0.0/16',
  podServer: () => ({ listen: async () => {}, close: async () => {} }),
})
const { objects } = playground
const labels = { app: 'web' }

function addObjects() {
  objects.apply({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'default' },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'web', image: 'echo', ports: [{ containerPort: 8080 }] }] },
      },
    },
  })
  // No selector, so that documents can name its endpoints.
  objects.apply({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'default' },
    spec: { clusterIP: '10.96.0.10', ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
  })
  objects.apply({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'web-1', namespace: 'default', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    endpoints: [
      { addresses: ['10.244.1.10'], nodeName: 'worker-1', conditions: { ready: true } },
      { addresses: ['10.244.2.10'], nodeName: 'vm-001', conditions: { ready: true } },
    ],
  })
}

/** A page may change everything; the next one starts from the same objects again. */
function startOver() {
  for (const kind of ['Deployment', 'Service', 'EndpointSlice', 'Pod']) {
    for (const { metadata } of objects.list(kind)) {
      if (metadata.name !== 'kubernetes')
        objects.delete(kind, metadata.name, metadata.namespace, { gracePeriodSeconds: 0 })
    }
  }
  addObjects()
  console.log('ready')
}

startOver()
process.stdin.on('data', startOver)
process.on('SIGTERM', () => playground.close().then(() => process.exit(0)))
