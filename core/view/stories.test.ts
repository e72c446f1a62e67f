import { fileURLToPath } from 'node:url'
import { localv1 } from '@kpng/api'
import { runStories, type Teller } from '../../scripts/testing/stories.js'
import type { EndpointPort, EndpointRecord } from '../store/index.js'
import { endpoint, node, service, syncedStore } from '../testing/objects.js'
import { type NodeChange, type NodeWatch, servicesOf, topologyOf, View } from './node-watch.js'
import { Scope, type SelectedEndpoint, selectEndpoints } from './selection.js'
import type { ServiceChange } from './service-change.js'

// What the lines of the stories mean. stories/README.md explains them to those who write stories.

runStories(fileURLToPath(new URL('stories', import.meta.url)), () => {
  const cluster = new Cluster()
  return (line) => cluster.tell(line)
})

interface Slice {
  readonly service: string
  ports: readonly EndpointPort[] | undefined
  readonly endpoints: Map<string, EndpointRecord>
}

class Cluster {
  readonly #store = syncedStore()
  readonly #view = new View(this.#store)
  readonly #watches = new Map<string, NodeWatch>()
  readonly #slices = new Map<string, Slice>()
  #service = 'web'
  #slice = 'web-1'

  readonly #commands: { [command: string]: Teller } = {
    service: (rest) => this.#setService(words(rest)),
    slice: (rest) => this.#startSlice(words(rest)),
    node: (rest) => {
      const { name, in: zone = '' } = fields(['name', ...words(rest)])
      this.#store.update((tx) => tx.setNode(node(name as string, zone)))
    },
    gone: (rest) => {
      for (const { endpoints } of this.#slices.values()) endpoints.delete(rest)
      this.#write()
    },
    seen: (rest) => this.#seen(rest === 'from nowhere' ? '' : rest.replace('from ', '')),
    told: (rest) => this.#told(rest),
    served: () => this.#served(),
  }

  tell(line: string): ReturnType<Teller> {
    const [, command = '', rest = ''] = /^(\S+) ?(.*)$/.exec(line.trim()) ?? []
    if (/^[\d]|:/.test(command)) return this.#setEndpoint(command, words(rest))
    const does = this.#commands[command]
    if (!does) throw new Error(`Nobody knows what "${line}" means`)
    return does(rest)
  }

  #setService([name = '', ...rest]: string[]): undefined {
    const { port, internal, external, 'external-ip': externalIp, 'load-balancer-ip': loadBalancerIp } = fields(rest)
    const ports = (port ?? 'http/tcp').split(',').map((text, index) => {
      const [portName = '', protocol = 'tcp'] = text.split('/')
      const nodePort = rest.includes('node-port') ? 30_080 + index : 0
      // The target port of a port with a name is that name: each slice has its own number for it.
      const target = portName === 'http' ? { targetPort: 8080 } : { targetPortName: portName }
      return {
        name: portName,
        protocol: localv1.Protocol[protocol.toUpperCase() as 'TCP'],
        port: 80 + index,
        nodePort,
        ...target,
      }
    })
    this.#service = name
    this.#slice = `${name}-1`
    this.#store.update((tx) =>
      tx.setService(
        service(name, {
          ports: rest.includes('no-ports') ? [] : ports,
          internalTrafficToLocal: internal === 'Local',
          externalTrafficToLocal: external === 'Local',
          ips: {
            clusterIps: { v4: ['10.96.0.10'] },
            externalIps: { v4: externalIp ? [externalIp] : [] },
            loadBalancerIps: { v4: loadBalancerIp ? [loadBalancerIp] : [] },
          },
        }),
      ),
    )
  }

  #startSlice([name = '', ...rest]: string[]): undefined {
    this.#slice = name
    this.#slices.set(name, { service: this.#service, ports: portsIn(rest), endpoints: new Map() })
    this.#write()
  }

  #setEndpoint(ip: string, rest: string[]): undefined {
    const { on, pod, zones, nodes } = fields(rest)
    const slice = this.#slices.get(this.#slice) ?? { service: this.#service, ports: portsIn([]), endpoints: new Map() }
    this.#slices.set(this.#slice, slice)
    slice.endpoints.set(
      `${ip} ${slice.endpoints.has(ip) ? slice.endpoints.size : ''}`.trim(),
      endpoint(ip, {
        ports: slice.ports,
        ...(rest.includes('terminating') && { ready: false, serving: true, terminating: true }),
        ...(rest.includes('not-ready') && { ready: false }),
        ...(rest.includes('not-serving') && { serving: false }),
        ...(rest.includes('ready') && { ready: true }),
        ...(on && { node: on }),
        ...(pod && { podName: pod }),
        ...(zones && { zones: zones.split(',') }),
        ...(nodes && { nodes: nodes.split(',') }),
      }),
    )
    this.#write()
  }

  #write(): undefined {
    this.#store.update((tx) => {
      for (const [name, slice] of this.#slices) {
        tx.setEndpoints({
          namespace: 'default',
          name,
          service: slice.service,
          endpoints: [...slice.endpoints.values()],
        })
      }
    })
  }

  #selection(nodeName: string) {
    const entry = this.#store.entry(`default/${this.#service}`)
    if (!entry?.service) throw new Error('The story has no service')
    const records = [...entry.sources.values()].flat()
    return {
      entry,
      selection: selectEndpoints(entry.service, records, topologyOf(nodeName, this.#store.node(nodeName))),
    }
  }

  /** In the order of the slices: what each endpoint is used for, or why it is not used. */
  #seen(nodeName: string): string {
    const { entry, selection } = this.#selection(nodeName)
    const { used, leftOut } = selection
    const lines = [...entry.sources.values()].flat().map((record) => {
      const found = used.find((one) => one.endpoint === record)
      const reason = leftOut.find((one) => one.endpoint === record)?.reason
      return `${addressOf(record)}: ${found ? this.#uses(found) : `- ${reason}`}`
    })
    return lines.join('\n') || 'nothing'
  }

  /** What changed for a node since it was asked last. */
  #told(nodeName: string): string {
    const watch = this.#watches.get(nodeName) ?? this.#view.watchNode({ nodeName })
    this.#watches.set(nodeName, watch)
    const change: NodeChange | undefined = watch.poll()
    if (!change) return 'nothing'
    return [...servicesOf(change)].flatMap((one) => this.#changeLines(one, change)).join('\n') || 'nothing'
  }

  #changeLines({ path, after, hasNewService, shared, ownKeys, own }: ServiceChange, { isWhole }: NodeChange): string[] {
    const isShared = ({ key }: { key: string }) => !ownKeys.has(key)
    const name = path.replace('default/', '')
    return [
      ...(hasNewService ? [`service ${name}${after ? '' : ' is gone'}${isWhole ? ' (whole view)' : ''}`] : []),
      ...[...shared.set.filter(isShared), ...own.set]
        .map((one) => `${addressOf(one.endpoint)}: ${this.#uses(one)}`)
        .sort(),
      ...[...shared.gone.filter(isShared), ...own.gone].map((one) => `${addressOf(one.endpoint)} is gone`).sort(),
    ]
  }

  #uses({ local, scopes, portScopes }: SelectedEndpoint): string {
    const ports = this.#store.entry(`default/${this.#service}`)?.service?.ports ?? []
    const text = portScopes
      ? portScopes
          .flatMap((bits, index) => (bits === 0 ? [] : [`${ports[index]?.name} ${scopeNames(bits)}`]))
          .join(', ')
      : scopeNames(scopes)
    return `${text || 'drains'}${local ? ' local' : ''}`
  }

  /** For each port, in which families somebody in the cluster serves it. */
  #served(): string {
    const { entry, selection } = this.#selection('')
    const lines = selection.availability.map(({ v4, v6 }, index) => {
      const families = [...(v4 ? ['IPv4'] : []), ...(v6 ? ['IPv6'] : [])].join(' ')
      return `${entry.service?.ports[index]?.name}: ${families || 'nobody'}`
    })
    return lines.join('\n')
  }
}

const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '')

/** Pairs of a name and a value, among flags that stand alone. */
function fields(given: readonly string[]): { [name: string]: string | undefined } {
  const names = [
    'name',
    'in',
    'on',
    'pod',
    'zones',
    'nodes',
    'port',
    'ports',
    'internal',
    'external',
    'external-ip',
    'load-balancer-ip',
  ]
  return Object.fromEntries(given.flatMap((word, at) => (names.includes(word) ? [[word, given[at + 1]]] : [])))
}

/** `ports http=8080,metrics=9090`; `no-ports`; `ports-not-listed`. Default: http=8080. */
function portsIn(given: readonly string[]): readonly EndpointPort[] | undefined {
  if (given.includes('ports-not-listed')) return undefined
  if (given.includes('no-ports')) return []
  return (fields(given).ports ?? 'http=8080').split(',').map((text) => {
    const [name = '', port] = text.split('=')
    return { name, port: Number(port) }
  })
}

const scopeNames = (bits: number): string =>
  Object.entries(Scope)
    .filter(([, bit]) => bits & bit)
    .map(([name]) => name)
    .join(' ')

const addressOf = ({ v4, v6 }: EndpointRecord): string => [...v4, ...v6].join()
