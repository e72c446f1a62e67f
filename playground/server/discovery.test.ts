import { describe, expect, it } from 'vitest'
import { Kinds } from '../kinds/index.js'
import { ServiceNetwork } from '../services/network.js'
import { Store } from '../storage/store.js'
import { Discovery } from './discovery.js'

const discovery = new Discovery(new Kinds(new ServiceNetwork(new Store({ logSize: 1 }), { first: 1, last: 2 })))
const ask = (path: string, accept = 'application/json') => discovery.answer(path, accept, '127.0.0.1:6443')
const aggregated = (version: string) =>
  `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList,application/json`

describe('discovery', () => {
  it('in the form of before 1.26', () => {
    expect(ask('/api')).toMatchObject({ kind: 'APIVersions', versions: ['v1'] })
    expect(ask('/apis')).toMatchObject({
      kind: 'APIGroupList',
      groups: expect.arrayContaining([expect.objectContaining({ name: 'discovery.k8s.io' })]),
    })
    expect(ask('/apis/networking.k8s.io')).toMatchObject({
      kind: 'APIGroup',
      preferredVersion: { groupVersion: 'networking.k8s.io/v1' },
    })
    const { resources } = ask('/api/v1') as { resources: { name: string; kind: string; shortNames?: string[] }[] }
    expect(resources.find(({ name }) => name === 'services')).toMatchObject({
      kind: 'Service',
      shortNames: ['svc'],
      namespaced: true,
    })
    expect(resources.map(({ name }) => name)).toContain('services/status')
    expect((ask('/apis/apps/v1') as typeof resources & { resources: object[] }).resources).toContainEqual(
      expect.objectContaining({ name: 'deployments/scale', kind: 'Scale', group: 'autoscaling' }),
    )
  })
  it.each(['v2', 'v2beta1'])('aggregated, %s', (version) => {
    const answer = ask('/apis', aggregated(version))
    expect(answer).toMatchObject({ kind: 'APIGroupDiscoveryList', apiVersion: `apidiscovery.k8s.io/${version}` })
    expect(Discovery.contentType(answer)).toBe(
      `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
    )
    const { items } = answer as { items: { metadata: { name: string }; versions: { resources: object[] }[] }[] }
    expect(items.find(({ metadata }) => metadata.name === 'apps')?.versions[0]?.resources).toMatchObject([
      {
        resource: 'deployments',
        scope: 'Namespaced',
        subresources: [{ subresource: 'status' }, { subresource: 'scale' }],
      },
      // Known by name only.
      ...['statefulsets', 'daemonsets', 'replicasets'].map((resource) => ({ resource, verbs: [] })),
    ])
  })
  it('knows what is none of it', () => {
    for (const path of ['/api/v2', '/apis/nope', '/apis/apps/v2', '/api/v1/services', '/metrics'])
      expect(ask(path)).toBeUndefined()
  })
})
