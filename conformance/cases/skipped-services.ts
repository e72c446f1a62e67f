import { clusterIp, externalIp, ipsOf } from '../addresses.js'
import type { Case, Expectation, KubernetesObject } from './case.js'
import { inFamilies, keepsSource, oneStep, refused, tcp, unserved } from './cells.js'
import { headlessLabel, served, service, serviceProxyNameLabel, slices, tcpPort } from './objects.js'

/** A label comes and goes, as the steps say. */
const toggled = (
  one: Pick<Case, 'id' | 'title'>,
  number: number,
  objects: (isThere: boolean) => KubernetesObject[],
  whileThere: Expectation,
  rows: readonly number[],
): Case => ({
  ...one,
  steps: [false, true, false].map((isThere) => ({
    after: isThere ? 'the label is there' : 'the label is not there',
    objects: objects(isThere),
    cells: inFamilies([
      ['pod-a', 'pod-a', tcp(clusterIp(number), 80), isThere ? whileThere : keepsSource(['a1']), rows],
    ]),
  })),
})

export const skippedServiceCases: readonly Case[] = [
  toggled(
    {
      id: 'another-proxy-toggled',
      title: 'A Service is served until it gets a service-proxy-name label, and again without it',
    },
    196,
    (isThere) =>
      served('another-proxy-toggled', 196, ['a1'], {
        ports: [tcpPort(80)],
        ...(isThere && { labels: { [serviceProxyNameLabel]: 'another' } }),
      }),
    unserved,
    [2],
  ),
  toggled(
    {
      id: 'headless-label-toggled',
      title: 'Slices count until they get the label of headless Services, and again without it',
    },
    197,
    (isThere) => [
      service('headless-label-toggled', 197, { ports: [tcpPort(80)] }),
      ...slices('headless-label-toggled', ['a1'], isThere ? { labels: { [headlessLabel]: '' } } : {}),
    ],
    refused,
    [3, 20],
  ),
  oneStep({
    id: 'another-proxy',
    title: 'A Service with a service-proxy-name label is left to the proxy of that name',
    objects: served('another-proxy', 100, ['a1'], {
      ports: [tcpPort(80)],
      labels: { [serviceProxyNameLabel]: 'another' },
      spec: { externalIPs: ipsOf(externalIp(100)) },
    }),
    cells: [
      ['cluster-ip', 'pod-a', tcp(clusterIp(100), 80), unserved, [2]],
      ['external-ip', 'outside', tcp(externalIp(100), 80), unserved, [2]],
    ],
  }),
  oneStep({
    id: 'headless',
    title: 'A headless Service is not proxied, even with external IPs',
    objects: served('headless', 101, ['a1'], {
      ports: [tcpPort(80)],
      spec: { clusterIP: 'None', clusterIPs: ['None'], externalIPs: ipsOf(externalIp(101)) },
    }),
    cells: [['external-ip', 'outside', tcp(externalIp(101), 80), unserved, [1]]],
  }),
  oneStep({
    id: 'external-name',
    title: 'An ExternalName Service is not proxied',
    objects: served('external-name', 102, ['a1'], { ports: [tcpPort(80)] }).map((object) =>
      object.kind === 'Service'
        ? {
            ...object,
            spec: {
              type: 'ExternalName',
              externalName: 'example.com',
              externalIPs: ipsOf(externalIp(102)),
              ports: [{ port: 80 }],
            },
          }
        : object,
    ),
    cells: [['external-ip', 'outside', tcp(externalIp(102), 80), unserved, [5]]],
  }),
]
