import { KpngError } from '@kpng/api'
import fc from 'fast-check'
import { dump } from 'js-yaml'
import { describe, it } from 'vitest'
import { damaged, damagedText, fuzzing, oddTexts } from '../../../scripts/testing/damaged.js'
import { keptKeys } from '../../kubernetes/index.js'
import { readContent } from './read.js'

// Whatever is in a file, it is used, or refused with a sentence.

const kept = keptKeys([], [])
const options = { serviceProxyName: '', intern: String, keptOfServices: kept, keptOfNodes: kept }

const stateFile = {
  nodes: [{ name: 'node-a', labels: { a: 'b' }, topology: { zone: 'z', node: 'node-a' } }],
  services: [
    {
      service: {
        ...{ namespace: 'default', name: 'web', type: 'ClusterIP', labels: { a: 'b' } },
        ips: { clusterips: { v4: ['10.96.0.1'] }, externalips: { v6: ['2001:db8::1'] } },
        ports: [{ name: 'http', protocol: 1, port: 80, targetport: 8080 }],
      },
      topologies: [{ zone: 'z' }],
      endpoints: [{ node: 'node-a', conditions: { ready: true }, endpoint: { ips: { v4: ['10.244.0.5'] } } }],
    },
  ],
}

const manifest = {
  ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', namespace: 'default', labels: {} } },
  spec: { type: 'ClusterIP', clusterIP: '10.96.0.1', ports: [{ port: 80, protocol: 'TCP', targetPort: 8080 }] },
}

const list = { apiVersion: 'v1', kind: 'List', items: [manifest, { ...manifest, kind: 'EndpointSlice' }] }

function read(text: string): void {
  try {
    readContent('state.yaml', text, options)
  } catch (error) {
    if (!(error instanceof KpngError)) throw error
  }
}

const asText = (document: unknown): string => dump(document, { skipInvalid: true })

describe.each(Object.entries({ stateFile, manifest, list }))('%s', (_, good) => {
  it('with damaged fields', () => {
    fc.assert(fc.property(damaged(good).map(asText), read), fuzzing<string>([]))
  })
  it('with damaged text', () => {
    fc.assert(fc.property(damagedText(asText(good)), read), fuzzing(oddTexts))
  })
})
