import { spawnSync } from 'node:child_process'
import { enterNewNamespace, whySkipped } from '@kpng/linux/testing'
import { beforeAll, describe, expect, it } from 'vitest'
import { userspaceBackend } from '../backend.js'
import { Cluster, endpoint, UDP } from '../testing/cluster.js'
import { udpClient, udpServer } from '../testing/peers.js'

const machineIps = ['10.9.0.1', '10.9.0.2', '127.0.0.1']

describe.skipIf(whySkipped('UDP node ports without a capture') !== undefined)(
  'a UDP node port without a capture',
  () => {
    beforeAll(async () => {
      await enterNewNamespace()
      const ip = (...args: string[]) => expect(spawnSync('ip', args, { encoding: 'utf8' }).stderr).toBe('')
      ip('link', 'set', 'lo', 'up')
      ip('link', 'add', 'eth9', 'type', 'veth', 'peer', 'name', 'eth8')
      ip('link', 'set', 'eth8', 'up')
      ip('link', 'set', 'eth9', 'up')
      for (const address of ['10.9.0.1', '10.9.0.2']) ip('address', 'add', `${address}/24`, 'dev', 'eth9')
    })

    it('answers from the address that was asked', async () => {
      const pod = await udpServer('127.20.0.1', 'pod')
      const backend = userspaceBackend({ allowLoopback: true, syncPeriodMs: 0, nodePortAddresses: ['all'] })
      await backend.setup({ requestFullSync: () => {} })
      const cluster = new Cluster(backend)
      await cluster.setNode({ addresses: ['10.9.0.1'] })
      const port = { name: 'http', protocol: UDP, port: 8053, targetPort: 8053, nodePort: 30_053 }
      await cluster.set('dns', { ports: [port] }, [endpoint('127.20.0.1', pod.port)])
      for (const from of machineIps) {
        const client = await udpClient(from)
        for (const ip of machineIps) expect([from, ip, await client.ask(ip, 30_053, 'x')]).toEqual([from, ip, 'pod:x'])
        client.close()
      }
      await backend.close()
      await pod.close()
    })
  },
)
