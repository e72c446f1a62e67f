import { messageOf } from '@kpng/api'
import { balancerFlags, type EndpointSettings, endpointFlags, HcnError, type LoadBalancerSettings } from '../hcn.js'
import { remoteMac } from '../remote-endpoints.js'
import type { TestedNode, TestPod } from './node.js'
import type { Checks } from './report.js'

// What HNS answers to mistakes. The stub of the tests (testing/stub.c) answers with the codes below; where nobody has seen HNS do it, its
// source says [guess]. A report from Windows turns a guess into a fact.

export interface Guess {
  /** What is asked for. */
  readonly name: string
  /** The HRESULT of the stub. */
  readonly code: number
  /** Whether a public issue shows that HNS answers so. */
  readonly seen?: boolean
  readonly overlayOnly?: boolean
  /** What is tried. It must be refused. */
  readonly balancer?: (frontend: LoadBalancerSettings) => LoadBalancerSettings
  readonly endpoint?: (ip: string) => EndpointSettings
}

export const guesses: readonly Guess[] = [
  {
    name: 'a load balancer without endpoints',
    ...{ code: 0x803b001c, seen: true },
    balancer: (settings) => ({ ...settings, HostComputeEndpoints: [] }),
  },
  {
    name: 'a load balancer with an endpoint that does not exist',
    code: 0x803b0002,
    balancer: (settings) => ({ ...settings, HostComputeEndpoints: ['01234567-89ab-cdef-0123-456789abcdef'] }),
  },
  {
    name: 'a load balancer without port mappings',
    ...{ code: 0x803b000d, seen: true },
    balancer: (settings) => ({ ...settings, PortMappings: [] }),
  },
  {
    name: 'a load balancer with a source VIP that is not an address',
    code: 0x803b000d,
    balancer: (settings) => ({ ...settings, SourceVIP: 'none' }),
  },
  {
    name: 'a load balancer with the IPv6 flag and an IPv4 address',
    code: 0x803b000d,
    balancer: (settings) => ({ ...settings, Flags: balancerFlags.ipv6 }),
  },
  {
    name: 'a remote endpoint without a MAC address',
    code: 0x803b000c,
    endpoint: (ip) => ({ IpConfigurations: [{ IpAddress: ip }], Flags: endpointFlags.remote }),
  },
  {
    name: 'a remote endpoint with a MAC address that is not one',
    code: 0x803b000c,
    endpoint: (ip) => ({ IpConfigurations: [{ IpAddress: ip }], Flags: endpointFlags.remote, MacAddress: 'none' }),
  },
  {
    name: 'a remote endpoint without a provider address',
    ...{ code: 0x803b000d, overlayOnly: true },
    endpoint: (ip) => ({
      ...{ IpConfigurations: [{ IpAddress: ip }], MacAddress: remoteMac(ip), Flags: endpointFlags.remote },
    }),
  },
]

export const hex = (code: number): string => `0x${code.toString(16).padStart(8, '0')}`

/** Asks HNS each of them. What HNS accepts all the same is deleted again. */
export async function askGuesses(node: TestedNode, [pod]: readonly TestPod[], checks: Checks): Promise<void> {
  const frontend: LoadBalancerSettings = {
    ...{ HostComputeEndpoints: [pod?.endpoint.ID ?? ''], FrontendVIPs: [node.address(9, 1)], Flags: 0 },
    PortMappings: [{ Protocol: 6, InternalPort: 8080, ExternalPort: 80 }],
  }
  for (const guess of guesses) {
    const name = `answer to ${guess.name}`
    if (guess.overlayOnly && !node.isOverlay) {
      checks.add('skipped', name, 'Only an overlay network is asked this.')
      continue
    }
    const answer = await answerTo(guess, node, frontend)
    const isSame = answer === hex(guess.code)
    const like = isSame ? 'as the stub answers' : `the stub of the tests answers ${hex(guess.code)}`
    checks.add('noted', name, `${answer}, ${like}.`, { answer, stub: hex(guess.code), isSame })
  }
}

async function answerTo(guess: Guess, node: TestedNode, frontend: LoadBalancerSettings): Promise<string> {
  const { hcn, network } = node
  try {
    if (guess.balancer) {
      const { ID } = await hcn.createLoadBalancer(guess.balancer(frontend))
      await hcn.deleteLoadBalancer(ID)
    }
    if (guess.endpoint) {
      const { ID } = await hcn.createEndpoint(network.ID, guess.endpoint(node.address(9, 2)))
      await hcn.deleteEndpoint(ID)
    }
    return 'accepted'
  } catch (error) {
    return error instanceof HcnError ? hex(error.code) : messageOf(error)
  }
}
