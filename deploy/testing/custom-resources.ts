import { type Check, duration, flag, list, map, object, oneOf, text, whole } from './checks.js'
import type { Manifest } from './manifest.js'
import { nameOf } from './manifest.js'

// The kinds that others bring to a cluster: the fields of theirs that the manifests use, and no others. A field that they
// do not know is dropped without a word, so look up each new field and add it here.

const top = {
  'apiVersion!': text,
  'kind!': text,
  'metadata!': object({ 'name!': text, 'namespace!': text, labels: map(text), annotations: map(text) }),
}

const certificate = object({
  'secretName!': text,
  'issuerRef!': object({ 'kind!': oneOf('Issuer', 'ClusterIssuer'), 'name!': text, group: text }),
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

const monitored = {
  'selector!': object({
    'matchLabels!': map(text),
    matchExpressions: list(object({ 'key!': text, 'operator!': oneOf('In'), 'values!': list(text) })),
  }),
  namespaceSelector: object({ matchNames: list(text) }),
}
const scraped = list(
  object({
    'port!': text,
    path: text,
    interval: duration,
    relabelings: list(
      object({ 'action!': oneOf('replace'), sourceLabels: list(text), targetLabel: text, replacement: text }),
    ),
  }),
)

const prometheusRule = object({
  'groups!': list(
    object({
      'name!': text,
      'rules!': list(
        object({ 'alert!': text, 'expr!': text, for: duration, 'labels!': map(text), 'annotations!': map(text) }),
      ),
    }),
  ),
})

/** By `apiVersion kind`. */
const kinds: Record<string, Check> = {
  'monitoring.coreos.com/v1 ServiceMonitor': object({
    ...top,
    'spec!': object({ ...monitored, 'endpoints!': scraped }),
  }),
  'monitoring.coreos.com/v1 PodMonitor': object({
    ...top,
    'spec!': object({ ...monitored, 'podMetricsEndpoints!': scraped }),
  }),
  'monitoring.coreos.com/v1 PrometheusRule': object({ ...top, 'spec!': prometheusRule }),
  'cert-manager.io/v1 Certificate': object({ ...top, 'spec!': certificate }),
  'cert-manager.io/v1 Issuer': object({
    ...top,
    'spec!': object({ selfSigned: object({}), ca: object({ 'secretName!': text }) }),
  }),
}

/** What an object has that its kind does not allow, or lacks. */
export function customResourceFaults(manifest: Manifest): string[] {
  const check = kinds[`${manifest.apiVersion} ${manifest.kind}`]
  return check ? check(manifest, nameOf(manifest)) : [`${manifest.apiVersion} ${manifest.kind} is no kind known here`]
}
