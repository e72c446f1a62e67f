import { writeFileSync } from 'node:fs'
import { silentLog } from '@kpng/api'
import { userspaceBackend } from '../backend.js'
import { netshCapture } from '../capture/netsh.js'
import { Cluster, endpoint, TCP, UDP } from './cluster.js'
import { ask, outcome, tcpServer, udpClient, udpServer } from './peers.js'

// The Windows backend, run by Node for Windows: sockets are real, netsh is recorded. The result goes to the file that is named
// on the command line.

const calls: string[] = []
const added = new Set<string>()
const run = async (program: string, args: readonly string[]) => {
  calls.push([program, ...args].join(' '))
  const ip = args[5]?.split('=')[1] ?? ''
  if (args[2] === 'add') added.add(ip)
  if (args[2] === 'delete') added.delete(ip)
  return [...added].map((address) => `    IP Address:                           ${address}`).join('\r\n')
}

const capture = netshCapture({ log: silentLog, run, pollMs: 10 })
const backend = userspaceBackend({ capture, allowLoopback: true, nodePortAddresses: ['all'], syncPeriodMs: 0 })
await backend.setup({ requestFullSync: () => {} })
const cluster = new Cluster(backend)
const [pod, echo, dns] = [
  await tcpServer('127.0.0.1', 'pod'),
  await tcpServer('127.0.0.1', 'echo', { serve: (socket) => socket.pipe(socket) }),
  await udpServer('127.0.0.1', 'dns'),
]
const port = { name: 'http', protocol: TCP, port: 18_080, nodePort: 30_914, targetPort: 80 }
const ips = { clusterIps: { v4: ['127.0.0.2'] } }
await cluster.set('web', { ips, ports: [port] }, [endpoint('127.0.0.1', pod.port)])
const answers: Record<string, unknown> = {
  platform: process.platform,
  clusterIp: await outcome('127.0.0.2', 18_080),
  nodePort: await outcome('127.0.0.1', 30_914),
}
await cluster.set('web', { ips, ports: [port] }, [endpoint('127.0.0.1', echo.port)])
const text = 'x'.repeat(300_000)
answers.echoed = (await ask('127.0.0.2', 18_080, text)) === text
await cluster.set('dns', { ips, ports: [{ ...port, protocol: UDP, port: 18_053, nodePort: 0 }] }, [
  endpoint('127.0.0.1', dns.port),
])
const client = await udpClient('127.0.0.1')
// wine opens UDP sockets on all addresses of an interface, and answers from the first.
answers.udp = await client.ask('127.0.0.2', 18_053, 'q', 2000, 'from anywhere')
await cluster.set('web', { ips, ports: [port] }, [])
answers.noEndpoints = await outcome('127.0.0.2', 18_080)
await backend.close()
answers.calls = calls.filter((call) => !call.includes(' show '))
writeFileSync(process.argv[2] as string, JSON.stringify(answers))
process.exit()
