import { once } from 'node:events'
import { createServer } from 'node:net'
import type { ConformanceOptions } from '../conformance/index.js'
import type { Hcn } from '../hcn.js'
import { hostMac, type NetworkType, nodeIp, sourceVip } from './node.js'

/** The options of a person on the node of node.ts. */
export const conformanceOptions = (hcn: Hcn, type: NetworkType): ConformanceOptions => ({
  ...{ networkName: 'cbr0', openHcn: async () => hcn, hostMacOf: () => hostMac, ownAddresses: () => [nodeIp] },
  ...(type === 'overlay' && { sourceVip }),
})

/** Addresses of loopback that no other run of these tests uses meanwhile: `127.<number>.0.0/16`. */
export interface Loopback {
  readonly prefix: string
  close(): void
}

export async function claimLoopback(): Promise<Loopback> {
  const first = Math.floor(Math.random() * 100)
  for (let at = 0; at < 100; at++) {
    const prefix = `127.${100 + ((first + at) % 100)}`
    const server = createServer().listen(8080, `${prefix}.255.1`)
    try {
      await once(server, 'listening')
      return { prefix, close: () => server.close() }
    } catch {
      // Another run has it.
    }
  }
  throw new Error('All ranges of loopback are taken.')
}

/** Makes a network whose pods have addresses of this machine, where traffic can flow. */
export async function trafficOptions(hcn: Hcn, { prefix }: Loopback): Promise<ConformanceOptions & { nodeIp: string }> {
  const Subnets = [{ IpAddressPrefix: `${prefix}.100.0/24` }]
  await hcn.createNetwork({ Name: 'loopback', Type: 'L2Bridge', Ipams: [{ Type: 'Static', Subnets }] })
  return {
    ...{ networkName: 'loopback', openHcn: async () => hcn, ownAddresses: () => [nodeIp], nodeIp: `${prefix}.101.1` },
    allowLoopback: true,
    ranges: [`${prefix}.0.0/16`, '2001:2::/48'],
  }
}
