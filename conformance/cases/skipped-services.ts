import { families } from '@kpng/api'
import { clusterIp, externalIp } from '../addresses.js'
import type { Case } from './case.js'
import { inFamilies, tcp, unserved } from './cells.js'
import { served, tcpPort } from './objects.js'

const externalIps = (number: number) => families.map((family) => externalIp(number)[family])

export const skippedServiceCases: readonly Case[] = [
  {
    id: 'another-proxy',
    title: 'A Service with a service-proxy-name label is left to the proxy of that name',
    steps: [
      {
        after: 'start',
        objects: served('another-proxy', 100, ['a1'], {
          ports: [tcpPort(80)],
          labels: { 'service.kubernetes.io/service-proxy-name': 'another' },
          spec: { externalIPs: externalIps(100) },
        }),
        cells: inFamilies([
          { id: 'cluster-ip', client: 'pod-a', to: tcp(clusterIp(100), 80), expect: unserved, rows: [2] },
          { id: 'external-ip', client: 'outside', to: tcp(externalIp(100), 80), expect: unserved, rows: [2] },
        ]),
      },
    ],
  },
  {
    id: 'headless',
    title: 'A headless Service is not proxied, even with external IPs',
    steps: [
      {
        after: 'start',
        objects: served('headless', 101, ['a1'], {
          ports: [tcpPort(80)],
          spec: { clusterIP: 'None', clusterIPs: ['None'], externalIPs: externalIps(101) },
        }),
        cells: inFamilies([
          { id: 'external-ip', client: 'outside', to: tcp(externalIp(101), 80), expect: unserved, rows: [1] },
        ]),
      },
    ],
  },
  {
    id: 'external-name',
    title: 'An ExternalName Service is not proxied',
    steps: [
      {
        after: 'start',
        objects: served('external-name', 102, ['a1'], { ports: [tcpPort(80)] }).map((object) =>
          object.kind === 'Service'
            ? {
                ...object,
                spec: {
                  type: 'ExternalName',
                  externalName: 'example.com',
                  externalIPs: externalIps(102),
                  ports: [{ port: 80 }],
                },
              }
            : object,
        ),
        cells: inFamilies([
          { id: 'external-ip', client: 'outside', to: tcp(externalIp(102), 80), expect: unserved, rows: [5] },
        ]),
      },
    ],
  },
]
