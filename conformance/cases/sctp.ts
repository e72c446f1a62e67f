import { clusterIp, externalIp, loadBalancerIp, nodeA, nodePort } from '../addresses.js'
import type { Case } from './case.js'
import { dropped, keepsSource, masqueraded, oneStep, reaches, refused, sctp, tcp } from './cells.js'
import { balanced, both, exposed, type ServicePort, served, tcpPort } from './objects.js'

// SCTP. It goes the ways of TCP, so these are one case of each: the ways a Service is reached, and the ways it is not.

const sctpPort = (port: number, more: Partial<ServicePort> = {}): ServicePort => ({
  ...tcpPort(port, more),
  protocol: 'SCTP',
})

/** Enough to see every endpoint, and not more: these cells run mostly in a VM, where everything takes long. */
const few = { tries: 4 }

export const sctpCases: readonly Case[] = [
  oneStep({
    id: 'sctp',
    title: 'SCTP is served at every address of a Service',
    objects: exposed('sctp', 150, both, { ports: [sctpPort(80, { nodePort: nodePort(150) })] }),
    cells: [
      ['pod-a', 'pod-a', sctp(clusterIp(150), 80), keepsSource(both), [13, 52], few],
      ['node-a', 'node-a', sctp(clusterIp(150), 80), masqueraded(both), [13, 52], few],
      ['outside-cluster-ip', 'outside', sctp(clusterIp(150), 80), masqueraded(both), [52, 60], few],
      ['outside', 'outside', sctp(nodeA, nodePort(150)), masqueraded(both), [15, 35, 52], few],
      ['outside-load-balancer', 'outside', sctp(loadBalancerIp(150), 80), masqueraded(both), [16, 52], few],
      ['outside-external-ip', 'outside', sctp(externalIp(150), 80), masqueraded(both), [17, 52], few],
      ['other-port', 'pod-a', sctp(clusterIp(150), 81), refused, [14, 52]],
    ],
  }),
  oneStep({
    id: 'sctp-and-tcp',
    title: 'SCTP and TCP of the same number are two ports',
    objects: served('sctp-and-tcp', 210, ['a1'], {
      ports: [tcpPort(80, { name: 'tcp', targetPort: 8080 }), sctpPort(80, { name: 'sctp', targetPort: 9090 })],
    }),
    cells: [
      ['sctp', 'pod-a', sctp(clusterIp(210), 80), keepsSource(['a1:9090']), [18, 52], few],
      ['tcp', 'pod-a', tcp(clusterIp(210), 80), keepsSource(['a1:8080']), [18, 52]],
    ],
  }),
  oneStep({
    id: 'sctp-no-endpoints',
    title: 'SCTP to a Service without endpoints is refused',
    objects: balanced('sctp-no-endpoints', 211, [], { ports: [sctpPort(80, { nodePort: nodePort(211) })] }),
    cells: [
      ['pod-a', 'pod-a', sctp(clusterIp(211), 80), refused, [20, 52]],
      ['node-a', 'node-a', sctp(clusterIp(211), 80), refused, [20, 52]],
      ['outside', 'outside', sctp(nodeA, nodePort(211)), refused, [20, 52]],
    ],
  }),
  oneStep({
    id: 'sctp-local',
    title: 'SCTP with traffic policies Local: local endpoints only, and the source kept from outside',
    objects: balanced('sctp-local', 212, both, {
      ports: [sctpPort(80, { nodePort: nodePort(212) })],
      spec: { externalTrafficPolicy: 'Local', internalTrafficPolicy: 'Local' },
    }),
    cells: [
      ['pod-a', 'pod-a', sctp(clusterIp(212), 80), keepsSource(['a1']), [32, 52]],
      ['outside', 'outside', sctp(loadBalancerIp(212), 80), keepsSource(['a1']), [33, 52]],
    ],
  }),
  oneStep({
    id: 'sctp-local-none-here',
    title: 'SCTP with traffic policies Local and no endpoint here is dropped',
    objects: balanced('sctp-local-none-here', 213, ['b1'], {
      ports: [sctpPort(80, { nodePort: nodePort(213) })],
      spec: { externalTrafficPolicy: 'Local', internalTrafficPolicy: 'Local' },
    }),
    cells: [
      ['pod-a', 'pod-a', sctp(clusterIp(213), 80), dropped, [32, 52]],
      ['outside', 'outside', sctp(loadBalancerIp(213), 80), dropped, [33, 52]],
    ],
  }),
  oneStep({
    id: 'sctp-affinity',
    title: 'ClientIP affinity holds for SCTP',
    objects: served('sctp-affinity', 214, both, {
      ports: [sctpPort(80)],
      spec: { sessionAffinity: 'ClientIP' },
    }),
    cells: [['pod-a', 'pod-a', sctp(clusterIp(214), 80), reaches(both, { hits: 'one' }), [37, 52]]],
  }),
]
