import { describe, expect, test } from 'vitest'
import type { HcnEndpoint, HcnLoadBalancer } from './hcn.js'
import { ipOf } from './remote-endpoints.js'
import { FakeHcn } from './testing/fake-hcn.js'
import { kinds } from './testing/kinds.js'
import { makeNetwork, type NetworkType, start } from './testing/node.js'

// What each kind of Service becomes, on each type of network and in each generation of HNS. testing/golden.txt has the documents, with
// the IPs of endpoints in the place of their IDs.

const versions = [
  { Major: 9, Minor: 5 },
  { Major: 12, Minor: 0 },
  { Major: 15, Minor: 4 },
]

async function documents(name: string, type: NetworkType, hnsVersion: (typeof versions)[number]): Promise<string[]> {
  const hcn = new FakeHcn()
  hcn.hnsVersion = hnsVersion
  await makeNetwork(hcn, type)
  const pods = new Set(hcn.endpoints.keys())
  const { services = [], options } = kinds[name] ?? {}
  const core = start(hcn, type, options, ...services)
  await core.sync()
  await core.stop()
  const made = [...hcn.endpoints.values()].filter(({ ID }) => !pods.has(ID))
  return [
    ...[...hcn.balancers.values()].map((balancer) => balancerText(balancer, hcn)).sort(),
    ...made.map(endpointText).sort(),
  ]
}

function balancerText({ ID: _, HostComputeEndpoints = [], ...rest }: HcnLoadBalancer, hcn: FakeHcn): string {
  const ips = HostComputeEndpoints.map((id) => ipOf(hcn.endpoints.get(id) as HcnEndpoint)).sort()
  return JSON.stringify({ HostComputeEndpoints: ips, ...rest })
}

const endpointText = (endpoint: HcnEndpoint) =>
  JSON.stringify({ ...endpoint, ID: undefined, HostComputeNetwork: undefined })

describe('the documents of each kind of Service', () => {
  test('are those in golden.txt', async () => {
    const lines: string[] = []
    for (const type of ['l2bridge', 'overlay'] as const) {
      for (const name of Object.keys(kinds)) {
        const byText = new Map<string, string[]>()
        for (const version of versions) {
          const text = (await documents(name, type, version)).map((line) => `  ${line}`).join('\n') || '  nothing'
          byText.set(text, [...(byText.get(text) ?? []), `${version.Major}.${version.Minor}`])
        }
        for (const [text, alike] of byText) lines.push(`${name} (${type}, HNS ${alike.join(', ')})`, text, '')
      }
    }
    expect(Object.keys(kinds)).toHaveLength(20)
    await expect(lines.join('\n')).toMatchFileSnapshot('testing/golden.txt')
  })
})
