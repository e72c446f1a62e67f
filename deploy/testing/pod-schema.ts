import { type Check, flag, list, map, object, oneOf, port, portOrName, quantity, text, whole } from './checks.js'
import { labelSelector, labels } from './metadata-schema.js'

// The fields of core/v1 pods that the manifests use, and no others: a field that Kubernetes does not know is dropped
// without a word, so each new one is put in here, by whoever has looked it up.

const keyRef = object({ 'name!': text, 'key!': text, optional: flag })
const env = object({
  'name!': text,
  value: text,
  valueFrom: object({
    fieldRef: object({ apiVersion: text, 'fieldPath!': oneOf('spec.nodeName', 'status.hostIP') }),
    configMapKeyRef: keyRef,
  }),
})

const probe = object({
  httpGet: object({ 'path!': text, 'port!': portOrName, scheme: oneOf('HTTP', 'HTTPS') }),
  tcpSocket: object({ 'port!': portOrName }),
  initialDelaySeconds: whole,
  periodSeconds: whole,
  timeoutSeconds: whole,
  failureThreshold: whole,
})

const seccompProfile = object({ 'type!': oneOf('RuntimeDefault', 'Localhost') })
const user = { runAsUser: whole, runAsGroup: whole, runAsNonRoot: flag, seccompProfile }

const container = object({
  'name!': text,
  'image!': text,
  imagePullPolicy: oneOf('Always', 'IfNotPresent', 'Never'),
  command: list(text),
  args: list(text),
  env: list(env),
  ports: list(object({ name: text, 'containerPort!': port, hostPort: port, protocol: oneOf('TCP', 'UDP', 'SCTP') })),
  startupProbe: probe,
  livenessProbe: probe,
  readinessProbe: probe,
  'resources!': object({ requests: map(quantity), limits: map(quantity) }),
  securityContext: object({
    ...user,
    allowPrivilegeEscalation: flag,
    readOnlyRootFilesystem: flag,
    capabilities: object({ drop: list(text), add: list(text) }),
  }),
  volumeMounts: list(object({ 'name!': text, 'mountPath!': text, readOnly: flag })),
})

const volume = object({
  'name!': text,
  emptyDir: object({ medium: oneOf('Memory', ''), sizeLimit: quantity }),
  configMap: object({ 'name!': text, optional: flag }),
  secret: object({ 'secretName!': text, defaultMode: whole }),
})

const requirement = object({
  'key!': text,
  'operator!': oneOf('In', 'NotIn', 'Exists', 'DoesNotExist'),
  values: list(text),
})

const podSpec = object({
  serviceAccountName: text,
  automountServiceAccountToken: flag,
  'priorityClassName!': oneOf('system-node-critical', 'system-cluster-critical'),
  hostNetwork: flag,
  dnsPolicy: oneOf('Default', 'ClusterFirst', 'ClusterFirstWithHostNet', 'None'),
  enableServiceLinks: flag,
  terminationGracePeriodSeconds: whole,
  nodeSelector: map(text),
  tolerations: list(object({ key: text, operator: oneOf('Exists', 'Equal'), value: text, effect: text })),
  affinity: object({
    podAntiAffinity: object({
      requiredDuringSchedulingIgnoredDuringExecution: list(object({ 'topologyKey!': text, labelSelector })),
    }),
    nodeAffinity: object({
      requiredDuringSchedulingIgnoredDuringExecution: object({
        'nodeSelectorTerms!': list(object({ matchExpressions: list(requirement) })),
      }),
    }),
  }),
  securityContext: object({
    ...user,
    fsGroup: whole,
    windowsOptions: object({ hostProcess: flag, runAsUserName: text }),
  }),
  'containers!': list(container),
  volumes: list(volume),
})

export const podTemplate: Check = object({ 'metadata!': object({ 'labels!': labels }), 'spec!': podSpec })
