import { type Manifest, nameOf } from './manifest.js'

// What one object says of another, or of another part of itself: the API server takes it all, and then nothing works.

type Labels = Record<string, string>

export interface Container {
  readonly name: string
  readonly image: string
  readonly command?: readonly string[]
  readonly args?: readonly string[]
  readonly env?: readonly {
    readonly name: string
    readonly value?: string
    readonly valueFrom?: { readonly configMapKeyRef?: { readonly name: string; readonly key: string } }
  }[]
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number; readonly hostPort?: number }[]
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[]
  readonly resources?: { readonly requests?: Record<string, string>; readonly limits?: Record<string, string> }
  readonly securityContext?: {
    readonly runAsUser?: number
    readonly runAsNonRoot?: boolean
    readonly allowPrivilegeEscalation?: boolean
    readonly readOnlyRootFilesystem?: boolean
    readonly privileged?: boolean
    readonly capabilities?: { readonly drop?: readonly string[]; readonly add?: readonly string[] }
  }
  readonly [probe: `${string}Probe`]: Probe | undefined
}

interface Probe {
  readonly httpGet?: { readonly port: number | string }
  readonly tcpSocket?: { readonly port: number | string }
}

export interface Workload extends Manifest {
  readonly spec: {
    readonly selector: { readonly matchLabels: Labels }
    readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: PodSpec }
  }
}

interface PodSpec {
  readonly serviceAccountName?: string
  readonly hostNetwork?: boolean
  readonly priorityClassName?: string
  readonly nodeSelector?: Labels
  readonly tolerations?: readonly { readonly operator?: string; readonly key?: string }[]
  readonly securityContext?: {
    readonly runAsUser?: number
    readonly runAsNonRoot?: boolean
    readonly seccompProfile?: { readonly type: string }
    readonly windowsOptions?: { readonly hostProcess?: boolean }
  }
  readonly initContainers?: readonly Container[]
  readonly containers: readonly Container[]
  readonly volumes?: readonly {
    readonly name: string
    readonly configMap?: { readonly name: string }
    readonly secret?: { readonly secretName: string }
  }[]
}

/** What is there before kpng: kubeadm's ConfigMap for kube-proxy. */
const foreignConfigMaps = ['kube-proxy']

export const isWorkload = (manifest: Manifest): manifest is Workload =>
  ['DaemonSet', 'Deployment'].includes(manifest.kind)

const covers = (selector: Labels, labels: Labels): boolean =>
  Object.entries(selector).every(([key, value]) => labels[key] === value)

const doubles = (names: readonly string[]): string[] => names.filter((name, index) => names.indexOf(name) !== index)

/** The faults of everything that is applied together. `secrets` are those that somebody else makes. */
export function referenceFaults(all: readonly Manifest[], secrets: readonly string[]): string[] {
  const workloads = all.filter(isWorkload)
  return [
    ...doubles(all.map(nameOf)).map((name) => `${name} is there twice`),
    ...workloads.flatMap((workload) => [...workloadFaults(workload), ...outsideFaults(workload, all, secrets)]),
    ...all.flatMap((manifest) => selectorFaults(manifest, all, workloads)),
    ...bindingFaults(all),
  ]
}

function workloadFaults(workload: Workload): string[] {
  const { selector, template } = workload.spec
  const { initContainers = [], volumes = [] } = template.spec
  const containers = [...initContainers, ...template.spec.containers]
  const where = nameOf(workload)
  const ports = containers.flatMap((container) => container.ports ?? [])
  const mounted = new Set(containers.flatMap((container) => (container.volumeMounts ?? []).map(({ name }) => name)))
  return [
    ...(covers(selector.matchLabels, template.metadata.labels) ? [] : [`${where} does not select its own pods`]),
    ...doubles(containers.map(({ name }) => name)).map((name) => `${where} has two containers called ${name}`),
    ...doubles(ports.map(({ containerPort }) => `${containerPort}`)).map(
      (port) => `${where} has the port ${port} twice`,
    ),
    ...volumes.filter(({ name }) => !mounted.has(name)).map(({ name }) => `${where}: nobody mounts the volume ${name}`),
    ...[...mounted]
      .filter((name) => !volumes.some((volume) => volume.name === name))
      .map((name) => `${where}: there is no volume ${name}`),
    ...containers.flatMap((container) => containerFaults(container, `${where} ${container.name}`)),
  ]
}

function containerFaults(container: Container, where: string): string[] {
  const { ports = [], env = [], args = [], command = [] } = container
  const hasPort = (wanted: number | string) =>
    ports.some(({ name, containerPort }) => name === wanted || containerPort === wanted)
  const probed = Object.entries(container).flatMap(([key, value]) => {
    const probe = value as Probe
    const port = key.endsWith('Probe') ? (probe.httpGet?.port ?? probe.tcpSocket?.port) : undefined
    return port === undefined || hasPort(port) ? [] : [`${where}: ${key} asks the port ${port}, which is not there`]
  })
  const names = new Set(env.map(({ name }) => name))
  const variables = [...[...command, ...args].join(' ').matchAll(/\$\((\w+)\)/g)].map(([, name]) => name ?? '')
  return [
    ...probed,
    ...variables.filter((name) => !names.has(name)).map((name) => `${where}: $(${name}) is no variable of it`),
    ...doubles(env.map(({ name }) => name)).map((name) => `${where}: the variable ${name} is there twice`),
  ]
}

function outsideFaults(workload: Workload, all: readonly Manifest[], secrets: readonly string[]): string[] {
  const { spec } = workload.spec.template
  const where = nameOf(workload)
  const maps = new Map(all.filter(({ kind }) => kind === 'ConfigMap').map((map) => [map.metadata.name, map]))
  const certificates = all.filter(({ kind }) => kind === 'Certificate') as (Manifest & {
    spec: { secretName: string }
  })[]
  const knownSecrets = [...secrets, ...certificates.map((certificate) => certificate.spec.secretName)]
  const account = spec.serviceAccountName ?? 'default'
  const hasAccount = all.some(({ kind, metadata }) => kind === 'ServiceAccount' && metadata.name === account)
  const keys = spec.containers.flatMap(({ env = [] }) => env.map(({ valueFrom }) => valueFrom?.configMapKeyRef))
  return [
    ...(hasAccount ? [] : [`${where}: there is no ServiceAccount ${account}`]),
    ...keys.flatMap((ref) => {
      if (!ref) return []
      const data = (maps.get(ref.name) as { data?: Labels } | undefined)?.data
      return data && ref.key in data ? [] : [`${where}: the ConfigMap ${ref.name} has no ${ref.key}`]
    }),
    ...(spec.volumes ?? []).flatMap(({ configMap, secret }) => [
      ...(configMap && !maps.has(configMap.name) && !foreignConfigMaps.includes(configMap.name)
        ? [`${where}: there is no ConfigMap ${configMap.name}`]
        : []),
      ...(secret && !knownSecrets.includes(secret.secretName)
        ? [`${where}: there is no Secret ${secret.secretName}`]
        : []),
    ]),
  ]
}

/** Services, budgets, policies and monitors have to select something, and ports by names that are there. */
function selectorFaults(manifest: Manifest, all: readonly Manifest[], workloads: readonly Workload[]): string[] {
  const { spec } = manifest as { spec?: Record<string, unknown> }
  const where = nameOf(manifest)
  const pods = (labels: Labels) => workloads.filter((one) => covers(labels, one.spec.template.metadata.labels))
  const portNames = (selected: readonly Workload[]) =>
    selected.flatMap((one) =>
      one.spec.template.spec.containers.flatMap(({ ports = [] }) => ports.map(({ name }) => name)),
    )
  const missing = (selected: readonly Workload[], wanted: readonly unknown[]) =>
    selected.length === 0
      ? [`${where} selects no pods`]
      : wanted
          .filter((port) => typeof port === 'string' && !portNames(selected).includes(port))
          .map((port) => `${where}: its pods have no port ${port}`)
  switch (manifest.kind) {
    case 'Service': {
      const { selector, ports } = spec as { selector: Labels; ports: { targetPort?: number | string }[] }
      return missing(
        pods(selector),
        ports.map(({ targetPort }) => targetPort),
      )
    }
    case 'PodDisruptionBudget': {
      const { selector } = spec as { selector: { matchLabels: Labels } }
      return missing(pods(selector.matchLabels), [])
    }
    case 'NetworkPolicy': {
      const { podSelector, ingress } = spec as {
        podSelector: { matchLabels: Labels }
        ingress: { ports: { port: unknown }[] }[]
      }
      const ports = ingress.flatMap((rule) => rule.ports.map(({ port }) => port))
      return missing(pods(podSelector.matchLabels), ports)
    }
    case 'PodMonitor': {
      const { selector, podMetricsEndpoints } = spec as {
        selector: { matchLabels: Labels; matchExpressions?: { key: string; values: string[] }[] }
        podMetricsEndpoints: { port: string }[]
      }
      const selected = pods(selector.matchLabels).filter(({ spec: { template } }) =>
        (selector.matchExpressions ?? []).every(({ key, values }) =>
          values.includes(template.metadata.labels[key] ?? ''),
        ),
      )
      return missing(
        selected,
        podMetricsEndpoints.map(({ port }) => port),
      )
    }
    case 'ServiceMonitor': {
      const { matchLabels } = (spec as { selector: { matchLabels: Labels } }).selector
      const selected = all.some(
        ({ kind, metadata }) => kind === 'Service' && covers(matchLabels, metadata.labels ?? {}),
      )
      return selected ? [] : [`${where} selects no Service`]
    }
    default:
      return []
  }
}

function bindingFaults(all: readonly Manifest[]): string[] {
  const bindings = all.filter(({ kind }) => kind === 'ClusterRoleBinding') as (Manifest & {
    roleRef: { name: string }
    subjects: { name: string }[]
  })[]
  const has = (kind: string, name: string) => all.some((one) => one.kind === kind && one.metadata.name === name)
  return bindings.flatMap((binding) => [
    ...(has('ClusterRole', binding.roleRef.name)
      ? []
      : [`${nameOf(binding)}: there is no ClusterRole ${binding.roleRef.name}`]),
    ...binding.subjects
      .filter(({ name }) => !has('ServiceAccount', name))
      .map(({ name }) => `${nameOf(binding)}: there is no ServiceAccount ${name}`),
  ])
}
