import type { Playground, Service } from '@kpng/playground'
import { demoName } from './demo-service.js'

/** The port of the demo Service: above 1023, so that nobody needs to be root. */
const demoPort = 8080

/** A Service with three pods. Objects that a data folder kept from the last time are left as they are. */
export function makeDemo({ objects }: Playground): void {
  if (!objects.get('Deployment', demoName)) {
    objects.apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: demoName },
      spec: {
        replicas: 3,
        selector: { matchLabels: { app: demoName } },
        template: {
          metadata: { labels: { app: demoName } },
          spec: { containers: [{ name: 'echo', image: 'echo', ports: [{ name: 'http', containerPort: 8080 }] }] },
        },
      },
    })
  }
  if (!objects.get('Service', demoName)) {
    objects.apply({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: demoName },
      spec: { selector: { app: demoName }, ports: [{ name: 'http', port: demoPort, targetPort: 'http' }] },
    })
  }
}

/**
 * The Service of the API server itself is left alone where it cannot be served: without root its port 443 cannot be opened, and no
 * packet comes from the lab's node to the API server on the machine's loopback. Otherwise the first thing to be seen is a warning.
 */
export function leaveApiServiceAlone({ objects }: Playground): void {
  const service = objects.get<Service>('Service', 'kubernetes')
  if (!service) return
  const { name, labels } = service.metadata
  const others = { ...labels, 'service.kubernetes.io/service-proxy-name': 'none' }
  objects.apply({ ...service, apiVersion: 'v1', kind: 'Service', metadata: { name, labels: others } })
}
