import { type Check, oneOf, port, quantity } from './checks.js'
import { type Manifest, nameOf } from './manifest.js'

// What the schemas leave open: they call a quantity, a protocol or a label "text", and a port "a number". The API server
// looks closer, and so does this. A rule holds wherever a path ends like this.

const label: Check = (value, path) =>
  /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/.test(`${value}`) ? [] : [`${path}: ${value} is no label`]

const objectName: Check = (value, path) =>
  /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(`${value}`) ? [] : [`${path}: ${value} is no name of an object`]

/** A port's number, or the name that a container gives it. */
const portOrName: Check = (value, path) =>
  /^[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?$/.test(`${value}`) && typeof value === 'string' ? [] : port(value, path)

/** A number, or a share such as 10%. */
const count: Check = (value, path) =>
  /^\d+%?$/.test(`${value}`) ? [] : [`${path}: ${value} is neither a number nor a share`]

const whole: Check = (value, path) => (Number.isInteger(value) ? [] : [`${path}: ${value} is no whole number`])

const rules: readonly (readonly [RegExp, Check])[] = [
  [/^[^.]*\.metadata\.name$/, objectName],
  [/\.(labels|matchLabels|nodeSelector)\.[^/]*(\/[^/]+)?$/, label],
  [/\.resources\.(requests|limits)\.[^.]+$|\.sizeLimit$/, quantity],
  [/\.(containerPort|hostPort|nodePort)$/, port],
  [/\.(port|targetPort)$/, portOrName],
  [/\.(maxUnavailable|maxSurge|minAvailable)$/, count],
  [/\.(replicas|defaultMode|fsGroup|runAs(User|Group)|\w+Seconds|failureThreshold)$/, whole],
  [/\.protocol$/, oneOf('TCP', 'UDP', 'SCTP')],
  [/\.scheme$/, oneOf('HTTP', 'HTTPS')],
  [/\.imagePullPolicy$/, oneOf('Always', 'IfNotPresent', 'Never')],
  [/\.dnsPolicy$/, oneOf('Default', 'ClusterFirst', 'ClusterFirstWithHostNet', 'None')],
  [/\.priorityClassName$/, oneOf('system-node-critical', 'system-cluster-critical')],
  [/\.seccompProfile\.type$/, oneOf('RuntimeDefault', 'Localhost')],
  [/\.updateStrategy\.type$/, oneOf('RollingUpdate', 'OnDelete')],
  [/\.strategy\.type$/, oneOf('RollingUpdate', 'Recreate')],
  [/^Service [^.]+\.spec\.type$/, oneOf('ClusterIP', 'NodePort', 'LoadBalancer')],
  [/\.ipFamilyPolicy$/, oneOf('SingleStack', 'PreferDualStack', 'RequireDualStack')],
  [/\.policyTypes\[\d+\]$/, oneOf('Ingress', 'Egress')],
  [/\.tolerations\[\d+\]\.operator$/, oneOf('Exists', 'Equal')],
  [/\.matchExpressions\[\d+\]\.operator$/, oneOf('In', 'NotIn', 'Exists', 'DoesNotExist')],
  [/\.fieldPath$/, oneOf('spec.nodeName', 'status.hostIP')],
  [/\.roleRef\.kind$/, oneOf('ClusterRole')],
  [/\.subjects\[\d+\]\.kind$/, oneOf('ServiceAccount')],
]

/** Every value of an object that is not one itself, with its path. */
function* leaves(value: unknown, path: string): Generator<readonly [string, unknown]> {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield* leaves(item, `${path}[${index}]`)
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, field] of Object.entries(value)) yield* leaves(field, `${path}.${key}`)
  } else yield [path, value]
}

/** Values that no API server would take. */
export const valueFaults = (manifest: Manifest): string[] =>
  [...leaves(manifest, nameOf(manifest))].flatMap(([path, value]) =>
    rules.flatMap(([ending, check]) => (ending.test(path) ? check(value, path) : [])),
  )
