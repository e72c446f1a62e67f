import { KpngError } from '@kpng/api'
import fc from 'fast-check'
import { dump } from 'js-yaml'
import { expect, it } from 'vitest'
import { damaged, damagedText, fuzzing, oddTexts } from '../../scripts/testing/damaged.js'
import { readConfig } from './read-config.js'

// Whatever a KubeProxyConfiguration says, it is used, or refused with a sentence.

const good = {
  ...{ apiVersion: 'kubeproxy.config.k8s.io/v1alpha1', kind: 'KubeProxyConfiguration', mode: 'nftables' },
  ...{ bindAddress: '0.0.0.0', healthzBindAddress: '0.0.0.0:10256', metricsBindAddress: '127.0.0.1:10249' },
  ...{ clusterCIDR: '10.244.0.0/16', hostnameOverride: 'node-a', nodePortAddresses: ['primary'], oomScoreAdj: -999 },
  ...{ configSyncPeriod: '15m0s', detectLocalMode: 'ClusterCIDR', featureGates: { A: true } },
  clientConnection: { kubeconfig: '/var/lib/kube-proxy/kubeconfig.conf', qps: 5, burst: 10 },
  conntrack: { maxPerCore: 32_768, min: 131_072, tcpEstablishedTimeout: '24h0m0s', tcpBeLiberal: false },
  iptables: {
    masqueradeAll: false,
    masqueradeBit: 14,
    minSyncPeriod: '1s',
    syncPeriod: '30s',
    localhostNodePorts: true,
  },
  nftables: { masqueradeAll: false, masqueradeBit: 14, minSyncPeriod: '1s', syncPeriod: '30s' },
  ipvs: { scheduler: 'rr', excludeCIDRs: ['10.0.0.0/8'], strictARP: true },
  detectLocal: { bridgeInterface: 'cni0', interfaceNamePrefix: 'veth' },
}

function read(text: string): void {
  try {
    readConfig(text, 'nftables')
  } catch (error) {
    if (!(error instanceof KpngError)) throw error
  }
}

const asText = (document: unknown): string => dump(document, { skipInvalid: true })

it('is used as it is', () => {
  expect(Object.keys(readConfig(asText(good)).settings).length).toBeGreaterThan(10)
})

/** What was found by fuzzing. */
const found = [asText({ ...good, mode: '__proto__' }), asText({ ...good, mode: 'constructor' })]

it('with damaged fields is used or refused', () => {
  fc.assert(fc.property(damaged(good).map(asText), read), fuzzing<string>(found))
})

it('with damaged text is used or refused', () => {
  fc.assert(fc.property(damagedText(asText(good)), read), fuzzing(oddTexts))
})
