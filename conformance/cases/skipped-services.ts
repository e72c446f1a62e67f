import { clusterIp, externalIp, ipsOf } from '../addresses.js'
import type { Case } from './case.js'
import { oneStep, tcp, unserved } from './cells.js'
import { served, tcpPort } from './objects.js'

export const skippedServiceCases: readonly Case[] = [
  oneStep({
    id: 'another-proxy',
    title: 'A Service with a service-proxy-name label is left to the proxy of that name',
    objects: served('another-proxy', 100, ['a1'], {
      ports: [tcpPort(80)],
      labels: { 'service.kubernetes.io/service-proxy-name': 'another' },
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
