import { silentLog } from '@kpng/api'
import { change, endpoint, fullSync, ips, tcp, thisNode, view } from '../../../dataplane/testing/objects.js'
import { ebpfBackend } from '../backend.js'

// A proxy as a process of its own, so that it can be killed: serves 10.96.0.1, and then changes endpoints without end.
// Arguments: the cgroup, and the bpf file system.

const [cgroup = '', bpffs = ''] = process.argv.slice(2)
const both = ['10.244.0.1 fd00:244::1', '10.244.0.2 fd00:244::2']
const web = (...endpoints: string[]) => ({
  name: 'web',
  ips: { clusterIps: ips('10.96.0.1', 'fd00:96::1') },
  ports: [tcp(80, { nodePort: 30080 })],
  endpoints: endpoints.map((each) => endpoint(each)),
})
const of = { ...view([web(...both)]), node: thisNode({ addresses: ['172.30.0.1'] }) }
const backend = ebpfBackend({ cgroup, bpffs, maxEndpoints: 1024, counters: true, log: silentLog })
await backend.setup({ requestFullSync: () => {} })
await backend.sync(of, fullSync)
process.stdout.write('synced\n')
for (let round = 0; ; round++) {
  const endpoints = round % 3 === 2 ? both : [both[round % 3] as string]
  await backend.sync(of, change(of, 'web', web(...endpoints)))
  await new Promise((resolve) => setTimeout(resolve, 1))
}
