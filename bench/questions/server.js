import { endpoint, ips, item, tcp } from '@kpng/client/testing'
import { FrontendTable } from '@kpng/dataplane'
import { Activity, agentApi, serveOnSocket } from '@kpng/node/agent-api'

// An agent API with many Services and no data plane. Its arguments: the socket, the number of Services, endpoints of each.

const [socket, services, endpoints] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])]

const serviceAt = (number) =>
  item({
    name: `service-${number}`,
    ips: { clusterIps: ips(`10.${96 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`) },
    ports: [tcp(80, { nodePort: number < 2000 ? 30_000 + number : 0, targetPort: 8080 })],
    endpoints: Array.from({ length: endpoints }, (_, index) =>
      endpoint(`10.${128 + index}.${(number >> 8) & 255}.${number & 255}`),
    ),
  })

const view = {
  nodeName: 'bench',
  node: undefined,
  services: new Map(Array.from({ length: services }, (_, number) => [`default/service-${number}`, serviceAt(number)])),
  serviceCidrs: new Map(),
}
const changes = { full: true, services: new Map(), node: false, serviceCidrs: false, triggers: [] }
const frontends = new FrontendTable()
const activity = new Activity()
frontends.apply(view, changes, { families: ['IPv4', 'IPv6'], addresses: ['192.0.2.1'] })
activity.onSync({ view, changes, startedAtMs: Date.now(), durationMs: 1, steps: [] })
await serveOnSocket(
  socket,
  agentApi({ nodeName: 'bench', version: 'bench', mode: 'none', activity, frontends }).handler,
)
console.log('ready')
