import type { Objects } from '@kpng/playground'

/** Random numbers that are the same in each run: mulberry32. */
export function seededRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

/**
 * Changes one object at random: a Service, an EndpointSlice or a Node is made, changed or deleted. Each change carries its
 * number, in a place that reaches the store, so that a reader can tell whether it saw them in order.
 */
export function randomChange(objects: Objects, random: () => number, number: number): void {
  const pick = (count: number) => Math.floor(random() * count)
  const roll = random()
  if (roll < 0.25) changeService(objects, `service-${pick(30)}`, pick(5) === 0, number)
  else if (roll < 0.85) changeSlice(objects, `slice-${pick(80)}`, `service-${pick(30)}`, pick(6), number)
  else changeNode(objects, `node-${pick(10)}`, pick(5) === 0, number)
}

function changeService(objects: Objects, name: string, isDeleted: boolean, number: number): void {
  if (isDeleted && objects.delete('Service', name)) return
  const there = objects.get('Service', name)
  const { clusterIP, clusterIPs } = (there?.spec ?? {}) as { clusterIP?: string; clusterIPs?: string[] }
  objects.apply({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default', labels: { number: String(number) } },
    spec: {
      ...(clusterIP && { clusterIP, clusterIPs }),
      ports: [{ name: 'http', port: 80 + (number % 100), protocol: 'TCP' }],
    },
  })
}

function changeSlice(objects: Objects, name: string, service: string, size: number, number: number): void {
  if (size === 0 && objects.delete('EndpointSlice', name)) return
  // A slice may change its service: the label can, and the store must follow.
  const endpoints = Array.from({ length: size }, (_, index) => ({
    addresses: [`10.${name.slice(6)}.0.${index + 1}`],
    nodeName: `node-${index}`,
    hostname: `number-${number}`,
    conditions: { ready: (number + index) % 3 !== 0 },
  }))
  objects.apply({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, namespace: 'default', labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints,
  })
}

function changeNode(objects: Objects, name: string, isDeleted: boolean, number: number): void {
  if (isDeleted && objects.delete('Node', name)) return
  objects.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { number: String(number) } }, spec: {} })
}
