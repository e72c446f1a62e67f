import { BlockList, isIPv4 } from 'node:net'
import { localv1 } from '@kpng/api'
import type { NodeView, ServiceEndpoints } from '@kpng/client'

// An independent answer to "what does this node serve?". It is naive on purpose: it looks at the whole view each time, shares no
// code with the data plane, and knows only what the generator of the property test can make.

export interface ExpectedFrontend {
  readonly service: string
  readonly kind: string
  readonly inside: readonly string[]
  readonly outside: readonly string[]
  readonly insideOtherwise: string
  readonly outsideOtherwise: string
  readonly allowed: readonly string[] | undefined
  readonly seconds: number | undefined
  readonly masquerade: string
}

interface Wish extends ExpectedFrontend {
  readonly place: string
  readonly address: string
}

/** By place: `10.96.0.1:80/tcp`, `10.0.0.55`, `IPv4 node port 30080/tcp`. */
export function expectedFrontends(view: NodeView): Map<string, ExpectedFrontend> {
  const wishes = [...view.services].flatMap(([path, item]) => wishesOf(path, item, view))
  const served = new Map<string, ExpectedFrontend>()
  for (const wish of wishes) {
    const rivals = wishes.filter(({ place }) => place === wish.place)
    const clusterOwners = wishes.filter(({ kind, address }) => kind === 'clusterIP' && address === wish.address)
    const isForeign =
      wish.kind !== 'clusterIP' &&
      wish.kind !== 'nodePort' &&
      clusterOwners.length > 0 &&
      !clusterOwners.some(({ service }) => service === wish.service)
    if (isForeign) continue
    const stronger = rivals.filter((rival) => {
      if (rival.service === wish.service) return wishes.indexOf(rival) < wishes.indexOf(wish)
      if ((rival.kind === 'clusterIP') !== (wish.kind === 'clusterIP')) return rival.kind === 'clusterIP'
      const rivalIsForeign =
        rival.kind !== 'clusterIP' &&
        rival.kind !== 'nodePort' &&
        clusterOwners.length > 0 &&
        !clusterOwners.some(({ service }) => service === rival.service)
      return !rivalIsForeign && rival.service < wish.service
    })
    if (stronger.length > 0) continue
    const { place, address: _, ...expected } = wish
    served.set(place, expected)
  }
  return served
}

function wishesOf(path: string, { service, endpoints }: ServiceEndpoints, view: NodeView): Wish[] {
  const wishes: Wish[] = []
  const bad = (ip: string) => /^127\.|^169\.254\.|^0\.|^::1?$|^fe80/.test(ip)
  for (const isFour of [true, false]) {
    const of = (set: localv1.IPSet | undefined) => (isFour ? set?.v4 : set?.v6) ?? []
    const clusterIps = of(service.ips?.clusterIps)
    const hasFamily =
      service.ips?.clusterIps?.v4.length || service.ips?.clusterIps?.v6.length ? clusterIps.length > 0 : true
    const balancers = of(service.ips?.loadBalancerIps).filter((ip) => hasFamily && !bad(ip))
    const externals = of(service.ips?.externalIps).filter((ip) => hasFamily && !bad(ip))
    const ports = service.mapIp ? [undefined] : service.ports
    for (const port of ports) {
      const using = (scope: 'internal' | 'external' | 'cluster') => {
        const list: string[] = []
        for (const endpoint of endpoints) {
          const own = endpoint.portOverrides.find(({ name }) => name === port?.name)
          const number = !port ? 0 : endpoint.portOverrides.length > 0 ? (own?.port ?? 0) : port.targetPort
          if (port && number === 0) continue
          const scopes = own?.scopes ?? endpoint.scopes
          const toLocal =
            scope === 'internal'
              ? service.internalTrafficToLocal
              : scope === 'external' && service.externalTrafficToLocal
          const isUsed = scopes ? scopes[scope] : endpoint.local || !toLocal
          for (const ip of of(endpoint.ips)) {
            const text = !port ? ip : isFour ? `${ip}:${number}` : `[${ip}]:${number}`
            if (isUsed && !bad(ip) && !list.includes(text)) list.push(text)
          }
        }
        return list
      }
      const [internal, external] = [using('internal'), using('external')]
      const cluster = using('cluster').length > 0 ? using('cluster') : external
      const told = isFour ? port?.servedFamilies?.v4 : port?.servedFamilies?.v6
      const anywhere = told ?? internal.length + cluster.length > 0
      const seconds =
        service.sessionAffinity.case === 'clientIp' ? service.sessionAffinity.value.timeoutSeconds || 10_800 : undefined
      const protocol = port && localv1.Protocol[port.protocol]?.toLowerCase()
      const place = (ip: string) => (!port ? ip : `${isFour ? ip : `[${ip}]`}:${port.port}/${protocol}`)
      const toLocal = service.externalTrafficToLocal
      const fromOutside = {
        inside: cluster,
        outside: toLocal ? external : cluster,
        insideOtherwise: 'refuse',
        outsideOtherwise: toLocal && anywhere ? 'drop' : 'refuse',
        seconds,
        masquerade: toLocal ? 'node' : 'always',
      }
      const internalOtherwise = service.internalTrafficToLocal && anywhere ? 'drop' : 'refuse'
      for (const address of clusterIps) {
        wishes.push({
          ...{ service: path, kind: 'clusterIP', place: place(address), address, allowed: undefined, seconds },
          ...{ inside: internal, outside: internal, masquerade: 'notPods' },
          ...{ insideOtherwise: internalOtherwise, outsideOtherwise: internalOtherwise },
        })
      }
      for (const address of [...balancers, ...externals.filter((ip) => !balancers.includes(ip))]) {
        if (clusterIps.includes(address)) continue
        const isBalancer = balancers.includes(address)
        const kind = isBalancer ? 'loadBalancerIP' : 'externalIP'
        const allowed = isBalancer ? allowedFor(service, address, isFour, view) : undefined
        wishes.push({ service: path, kind, place: place(address), address, allowed, ...fromOutside })
      }
      if (port && port.nodePort > 0 && hasFamily) {
        const where = `${isFour ? 'IPv4' : 'IPv6'} node port ${port.nodePort}/${protocol}`
        wishes.push({ service: path, kind: 'nodePort', place: where, address: '', allowed: undefined, ...fromOutside })
      }
    }
  }
  return wishes
}

function allowedFor(service: localv1.Service, address: string, isFour: boolean, view: NodeView): string[] | undefined {
  const ranges = service.ipFilters.flatMap(({ sourceRanges }) => sourceRanges)
  const own = ranges.filter((range) => isIPv4(range.split('/')[0] ?? '') === isFour)
  if (own.length === 0) return undefined
  const list = new BlockList()
  for (const range of own) {
    const [ip = '', bits] = range.split('/')
    list.addSubnet(ip, Number(bits), isFour ? 'ipv4' : 'ipv6')
  }
  const mine = (view.node?.addresses ?? []).filter((ip) => isIPv4(ip) === isFour)
  const isNodeAllowed = mine.some((ip) => list.check(ip, isFour ? 'ipv4' : 'ipv6'))
  return isNodeAllowed && !list.check(address, isFour ? 'ipv4' : 'ipv6')
    ? [...own, `${address}/${isFour ? 32 : 128}`].sort()
    : [...own].sort()
}
