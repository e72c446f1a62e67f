// Our proxy as the benchmark runs it: one service on a loopback address, one endpoint. Needs `npm run build` first.
import { create } from '@bufbuild/protobuf'
import { localv1 } from '@kpng/api'
import { userspaceBackend } from '../../backends/userspace/dist/index.js'

const [listen, upstream] = process.argv.slice(2).map(Number)
const service = create(localv1.ServiceSchema, {
  namespace: 'bench',
  name: 'web',
  ips: { clusterIps: { v4: ['127.0.0.1'] } },
  ports: [{ name: 'http', protocol: localv1.Protocol.TCP, port: listen, targetPort: upstream }],
})
const endpoint = create(localv1.EndpointSchema, {
  ips: { v4: ['127.0.0.1'] },
  scopes: { internal: true, external: true, cluster: true },
})
const services = new Map([['bench/web', { service, endpoints: [endpoint] }]])
const mover = process.argv[4]
const backend = userspaceBackend({ allowLoopback: true, ...(mover ? { mover } : {}) })
await backend.setup({ requestFullSync: () => {} })
const changes = { full: true, services: new Map(), node: false, serviceCidrs: false, triggers: [] }
await backend.sync({ nodeName: 'bench', node: undefined, services, serviceCidrs: new Map() }, changes)
for (const [portal, failure] of backend.observations.failures()) {
  console.error(`${portal}: ${failure}`)
  process.exit(1)
}
process.send?.('ready')
