import { type Check, count, duration, flag, list, map, object, oneOf, port, portOrName, text, whole } from './checks.js'
import { clusterWide, labelSelector, labels, namespaced } from './metadata-schema.js'
import { podTemplate } from './pod-schema.js'

const top = { 'apiVersion!': text, 'kind!': text }
const protocol = oneOf('TCP', 'UDP', 'SCTP')
const rollout = object({
  'type!': oneOf('RollingUpdate', 'OnDelete', 'Recreate'),
  rollingUpdate: object({ maxUnavailable: count, maxSurge: count }),
})

const servicePort = object({ name: text, 'port!': port, targetPort: portOrName, protocol })
const policyPorts = list(object({ port: portOrName, protocol }))
const issuerRef = object({ 'kind!': oneOf('Issuer', 'ClusterIssuer'), 'name!': text, group: text })

const certificate = object({
  'secretName!': text,
  'issuerRef!': issuerRef,
  commonName: text,
  isCA: flag,
  duration,
  renewBefore: duration,
  privateKey: object({
    algorithm: oneOf('ECDSA', 'RSA', 'Ed25519'),
    size: whole,
    rotationPolicy: oneOf('Always', 'Never'),
  }),
  usages: list(oneOf('digital signature', 'key encipherment', 'server auth', 'client auth')),
  dnsNames: list(text),
  ipAddresses: list(text),
})

const serviceMonitor = object({
  'selector!': labelSelector,
  namespaceSelector: object({ matchNames: list(text) }),
  'endpoints!': list(
    object({
      'port!': text,
      path: text,
      interval: duration,
      relabelings: list(
        object({ 'action!': oneOf('replace'), sourceLabels: list(text), targetLabel: text, replacement: text }),
      ),
    }),
  ),
})

/** By `apiVersion kind`. */
const kinds: Record<string, Check> = {
  'v1 ServiceAccount': object({ ...top, 'metadata!': namespaced, automountServiceAccountToken: flag }),
  'v1 ConfigMap': object({ ...top, 'metadata!': namespaced, 'data!': map(text) }),
  'v1 Service': object({
    ...top,
    'metadata!': namespaced,
    'spec!': object({
      type: oneOf('ClusterIP', 'NodePort', 'LoadBalancer'),
      clusterIP: text,
      externalIPs: list(text),
      ipFamilyPolicy: oneOf('SingleStack', 'PreferDualStack', 'RequireDualStack'),
      'selector!': labels,
      'ports!': list(servicePort),
    }),
  }),
  'rbac.authorization.k8s.io/v1 ClusterRole': object({
    ...top,
    'metadata!': clusterWide,
    'rules!': list(object({ 'apiGroups!': list(text), 'resources!': list(text), 'verbs!': list(text) })),
  }),
  'rbac.authorization.k8s.io/v1 ClusterRoleBinding': object({
    ...top,
    'metadata!': clusterWide,
    'roleRef!': object({ 'apiGroup!': text, 'kind!': oneOf('ClusterRole'), 'name!': text }),
    'subjects!': list(object({ 'kind!': oneOf('ServiceAccount'), 'name!': text, 'namespace!': text })),
  }),
  'apps/v1 DaemonSet': object({
    ...top,
    'metadata!': namespaced,
    'spec!': object({ 'selector!': labelSelector, updateStrategy: rollout, 'template!': podTemplate }),
  }),
  'apps/v1 Deployment': object({
    ...top,
    'metadata!': namespaced,
    'spec!': object({ replicas: whole, strategy: rollout, 'selector!': labelSelector, 'template!': podTemplate }),
  }),
  'policy/v1 PodDisruptionBudget': object({
    ...top,
    'metadata!': namespaced,
    'spec!': object({ minAvailable: count, maxUnavailable: count, 'selector!': labelSelector }),
  }),
  'networking.k8s.io/v1 NetworkPolicy': object({
    ...top,
    'metadata!': namespaced,
    'spec!': object({
      'podSelector!': labelSelector,
      'policyTypes!': list(oneOf('Ingress', 'Egress')),
      ingress: list(object({ ports: policyPorts })),
      egress: list(object({ ports: policyPorts })),
    }),
  }),
  'monitoring.coreos.com/v1 ServiceMonitor': object({ ...top, 'metadata!': namespaced, 'spec!': serviceMonitor }),
  'cert-manager.io/v1 Certificate': object({ ...top, 'metadata!': namespaced, 'spec!': certificate }),
  'cert-manager.io/v1 Issuer': object({
    ...top,
    'metadata!': namespaced,
    'spec!': object({ selfSigned: object({}), ca: object({ 'secretName!': text }) }),
  }),
}

/** An object of a manifest, as far as every kind has it. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels?: Record<string, string> }
}

export const nameOf = ({ kind, metadata }: Manifest): string => `${kind} ${metadata?.name}`

/** What an object has that its kind does not allow, or lacks. */
export function schemaFaults(manifest: Manifest): string[] {
  const check = kinds[`${manifest.apiVersion} ${manifest.kind}`]
  return check ? check(manifest, nameOf(manifest)) : [`${manifest.apiVersion} ${manifest.kind} is no kind known here`]
}
