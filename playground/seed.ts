import { release } from 'node:os'
import { kindNamed } from './controllers/controller.js'
import { apiVersionOf, type Kind } from './kinds/kind.js'
import { timestamp } from './objects/time.js'
import type { KubeObject } from './objects/types.js'
import type { Settings } from './options.js'
import type { Registry } from './registry/registry.js'
import { serverVersion } from './server/documents.js'
import { numberToAddress, parseCidr } from './services/cidr.js'

function ensure(registry: Registry, kind: Kind, namespace: string | undefined, name: string, fields: object): void {
  if (registry.find(kind, namespace, name)) return
  const object: KubeObject = { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: { name }, ...fields }
  registry.create(kind, namespace, object)
}

const readyCondition = (message: string) => {
  const now = timestamp()
  return {
    type: 'Ready',
    status: 'True',
    reason: 'KubeletReady',
    message,
    lastHeartbeatTime: now,
    lastTransitionTime: now,
  }
}

function nodeFields(name: string, settings: Settings): object {
  const zone = settings.zones[name]
  return {
    metadata: {
      name,
      labels: {
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': process.platform === 'win32' ? 'windows' : process.platform,
        'kubernetes.io/arch': process.arch === 'x64' ? 'amd64' : process.arch,
        ...(zone === undefined ? {} : { 'topology.kubernetes.io/zone': zone }),
      },
    },
    spec: { podCIDR: settings.podCidr, podCIDRs: [settings.podCidr] },
    status: {
      capacity: { cpu: '2', memory: '4Gi', pods: '110' },
      allocatable: { cpu: '2', memory: '4Gi', pods: '110' },
      conditions: [readyCondition('the playground is running')],
      addresses: [
        { type: 'InternalIP', address: settings.nodeAddress },
        { type: 'Hostname', address: name },
      ],
      nodeInfo: {
        machineID: '',
        systemUUID: '',
        bootID: '',
        kernelVersion: release(),
        osImage: 'kpng playground',
        containerRuntimeVersion: 'kpng://echo',
        kubeletVersion: serverVersion.gitVersion,
        kubeProxyVersion: '',
        operatingSystem: process.platform,
        architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      },
    },
  }
}

/** What every cluster has from the start: namespaces, nodes, the service range, and the `kubernetes` Service. */
export function seed(registry: Registry, settings: Settings, apiPort: number): void {
  const namespaceKind = kindNamed(registry, 'v1', 'Namespace')
  for (const name of ['default', 'kube-system', 'kube-public', 'kube-node-lease']) {
    ensure(registry, namespaceKind, undefined, name, {})
  }
  const now = timestamp()
  const ready = {
    type: 'Ready',
    status: 'True',
    reason: '',
    message: 'Kubernetes Service CIDR is ready',
    lastTransitionTime: now,
  }
  ensure(registry, kindNamed(registry, 'networking.k8s.io/v1', 'ServiceCIDR'), undefined, 'kubernetes', {
    spec: { cidrs: [...settings.serviceCidrs] },
    status: { conditions: [ready] },
  })
  for (const name of settings.nodeNames) {
    ensure(registry, kindNamed(registry, 'v1', 'Node'), undefined, name, nodeFields(name, settings))
  }
  seedKubernetesService(registry, settings, apiPort)
}

function seedKubernetesService(registry: Registry, settings: Settings, apiPort: number): void {
  const first = parseCidr(settings.serviceCidrs[0] ?? '')
  const clusterIP = first && numberToAddress(first.first + 1n, first.family)
  const labels = { component: 'apiserver', provider: 'kubernetes' }
  ensure(registry, kindNamed(registry, 'v1', 'Service'), 'default', 'kubernetes', {
    metadata: { name: 'kubernetes', labels },
    spec: { type: 'ClusterIP', clusterIP, ports: [{ name: 'https', port: 443, targetPort: apiPort }] },
  })
  const port = { name: 'https', port: apiPort, protocol: 'TCP' }
  const slices = kindNamed(registry, 'discovery.k8s.io/v1', 'EndpointSlice')
  const endpoints = kindNamed(registry, 'v1', 'Endpoints')
  const slice: KubeObject = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'kubernetes', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [settings.address], conditions: { ready: true } }],
    ports: [port],
  }
  const subsets = [{ addresses: [{ ip: settings.address }], ports: [port] }]
  const twin: KubeObject = {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'kubernetes', labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
    subsets,
  }
  // The port may be another one after a restart, so these are written, not only ensured.
  for (const [kind, object] of [
    [slices, slice],
    [endpoints, twin],
  ] as const) {
    if (registry.find(kind, 'default', 'kubernetes')) registry.update(kind, 'default', 'kubernetes', object)
    else registry.create(kind, 'default', object)
  }
}
