// The backend as a process, for the other benchmarks: serves 10.96.0.1:80, with the endpoints 10.9.9.1-4:7000, and many more Services.
//   node bench/ebpf/proxy.js CGROUP BPFFS SERVICES [changing]
// Prints "synced". With "changing" it goes on to change the endpoints of 10.96.0.1.
import { create } from '@bufbuild/protobuf'
import { localv1 } from '@kpng/api'
import { ebpfBackend } from '@kpng/backend-ebpf'
import { makeView, nothing } from '../nft/view.js'

const [cgroup, bpffs, services, changing] = process.argv.slice(2)

const endpoints = (...lasts) =>
  lasts.map((last) =>
    create(localv1.EndpointSchema, {
      ips: { v4: [`10.9.9.${last}`] },
      scopes: { internal: true, external: true, cluster: true },
    }),
  )
const service = create(localv1.ServiceSchema, {
  namespace: 'bench',
  name: 'measured',
  type: 'ClusterIP',
  ips: { clusterIps: { v4: ['10.96.0.1'] } },
  ports: [{ name: 'http', protocol: localv1.Protocol.TCP, port: 80, targetPort: 7000 }],
})

const view = makeView(Number(services), 4)
view.services.set('bench/measured', { service, endpoints: endpoints(1, 2, 3, 4) })
const log = { error: console.error, warn: console.error, info() {}, detail() {}, shows: () => false }
const backend = ebpfBackend({ cgroup, bpffs, log })
await backend.setup({ requestFullSync: console.error })
await backend.sync(view, { ...nothing, full: true, node: true })
console.log('synced')
if (!changing) setInterval(() => {}, 60_000)
for (let round = 0; changing; round++) {
  const before = view.services.get('bench/measured')
  const after = { service, endpoints: endpoints(1 + (round % 4), 1 + ((round + 1) % 4)) }
  view.services.set('bench/measured', after)
  await backend.sync(view, { ...nothing, services: new Map([['bench/measured', { before, after }]]) })
  await new Promise((resolve) => setTimeout(resolve, 2))
}
