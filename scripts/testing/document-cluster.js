// A cluster for the commands of documents: run inside a network namespace, it writes a kubeconfig and serves until it is stopped.
import { startPlayground } from '@kpng/playground'

const [kubeconfigPath] = process.argv.slice(2)

const playground = await startPlayground({
  kubeconfigPath,
  nodeNames: ['worker-1', 'vm-001'],
  zones: { 'worker-1': 'zone-a', 'vm-001': 'zone-b' },
  serviceCidrs: ['10.96.0.0/16'],
  // Apart from those of a playground that a document starts.
  podCidr: '127.11.0.0/16',
})
const labels = { app: 'web' }
playground.objects.apply({
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
// No selector: nftables does not serve endpoints on loopback, where the pods of a playground are.
playground.objects.apply({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'default' },
  spec: { clusterIP: '10.96.0.10', ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
})
playground.objects.apply({
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
console.log('ready')
process.on('SIGTERM', () => playground.close().then(() => process.exit(0)))
