import type { Playground } from '@kpng/playground'

/** The port of the demo Service: above 1023, so that nobody needs to be root. */
export const demoPort = 8080

/** A Service with three pods. Objects that a data folder kept from the last time are left as they are. */
export function makeDemo({ objects }: Playground): void {
  if (!objects.get('Deployment', 'web')) {
    objects.apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web' },
      spec: {
        replicas: 3,
        selector: { matchLabels: { app: 'web' } },
        template: {
          metadata: { labels: { app: 'web' } },
          spec: { containers: [{ name: 'echo', image: 'echo', ports: [{ name: 'http', containerPort: 8080 }] }] },
        },
      },
    })
  }
  if (!objects.get('Service', 'web')) {
    objects.apply({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web' },
      spec: { selector: { app: 'web' }, ports: [{ name: 'http', port: demoPort, targetPort: 'http' }] },
    })
  }
}

const isRoot = process.getuid?.() === 0

/** What there is to try. */
export function guide(kubeconfig: string, api: string, address: string): string {
  return `
A cluster on this machine: an API server, a node "playground", and a Service "web" with three pods.
kpng watches it, proxies ${address}:${demoPort}, and calls it once a second. In another terminal:

  export KUBECONFIG=${kubeconfig}
  kubectl get nodes,services,endpointslices,pods -o wide
  curl http://${address}:${demoPort}

  kubectl scale deployment web --replicas 5                         more pods answer
  kubectl label pod <name> playground.kpng.io/ready=false           one gets no more calls
  kubectl delete pod <name>                                         it drains, another takes its place
  kubectl label service web service.kubernetes.io/service-proxy-name=other
                                                                    kpng leaves it alone; "…proxy-name-" takes that back
  npx kpng-json --node-name playground${api === 'tcp://127.0.0.1:12090' ? '' : ` --api ${api.replace('tcp://', '')}`}                              what kpng tells the node

${isRoot ? '' : "Without root, ports below 1024 cannot be opened: the API server's own Service, 127.96.0.1:443, is reported as failed.\n"}Ctrl-C stops everything.
`
}
