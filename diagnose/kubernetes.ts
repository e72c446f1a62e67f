import { type Finding, type KubernetesFacts, type KubernetesService, nearestNames, type OtherPod } from '@kpng/api'
import type { Facts } from './facts.js'
import { counted, found, namesOf, word } from './findings.js'

// What is wrong outside the proxy: a selector, the pods, the load balancer. Each finding has the kubectl command that repairs it, or shows more.

/** @param endpoints that exist; undefined: nobody knows */
export function kubernetesFindings(path: string, facts: KubernetesFacts, endpoints: number | undefined): Finding[] {
  const { service } = facts
  if (!service || service.type === 'ExternalName' || service.notServed !== undefined) return []
  return [
    ...selectorFindings(path, service, facts, endpoints),
    ...readinessFindings(path, service, facts),
    ...targetPortFindings(path, service, facts),
    ...loadBalancerFindings(path, service),
    ...policyFindings(path, facts),
  ]
}

const selectorText = ({ selector }: KubernetesService): string =>
  Object.entries(selector)
    .map(([key, value]) => `${key}=${value}`)
    .join(',')

function selectorFindings(
  path: string,
  service: KubernetesService,
  { pods, otherPods }: KubernetesFacts,
  endpoints: number | undefined,
): Finding[] {
  const [namespace, name] = namesOf(path)
  const selector = selectorText(service)
  if (selector === '') {
    // Endpoints without a selector were written by somebody: all is well.
    if (endpoints !== 0) return []
    const what = 'It has no selector, so Kubernetes makes no EndpointSlices for it, and nobody has written any.'
    return [
      found('KPNG-K006', what, {
        command: `kubectl -n ${namespace} get endpointslices -l kubernetes.io/service-name=${name}`,
      }),
    ]
  }
  if (!('value' in pods) || pods.value.length > 0) return []
  const others = 'value' in otherPods ? otherPods.value : []
  const none = `Its selector (${selector}) matches no pod in the namespace ${path.split('/')[0]}`
  const suggested = suggestion(
    service,
    others.filter((pod) => path.startsWith(`${pod.namespace}/`)),
  )
  if (suggested) {
    const what = `${none}. Pods there have ${selectorText({ ...service, selector: suggested })}.`
    const labels = Object.entries(suggested).map(([key, value]) => word(`${key}=${value}`))
    return [
      found('KPNG-K001', what, { command: `kubectl -n ${namespace} set selector service ${name} ${labels.join(',')}` }),
    ]
  }
  const elsewhere = others.filter((pod) => matches(service, pod))
  if (elsewhere.length > 0) {
    const places = [...new Set(elsewhere.map((pod) => pod.namespace))]
    const what = `${none}, but pods in ${places.slice(0, 3).join(', ')}.`
    return [found('KPNG-K002', what, { command: `kubectl get pods -A -l ${word(selector)}` })]
  }
  return [found('KPNG-K001', `${none}.`, { command: `kubectl -n ${namespace} get pods --show-labels` })]
}

const matches = ({ selector }: KubernetesService, { labels }: OtherPod): boolean =>
  Object.entries(selector).every(([key, value]) => labels[key] === value)

/** A selector with one value, or one key, spelled as pods have it. Undefined: no pod is near. */
function suggestion(service: KubernetesService, pods: readonly OtherPod[]): Record<string, string> | undefined {
  const entries = Object.entries(service.selector)
  for (const { labels } of pods) {
    const wrong = entries.filter(([key, value]) => labels[key] !== value)
    const [[key, value] = []] = wrong
    if (wrong.length !== 1 || key === undefined || value === undefined) continue
    const has = labels[key]
    if (has !== undefined && isNear(value, has)) return { ...service.selector, [key]: has }
    const [nearKey] = nearestNames(
      key,
      Object.keys(labels).filter((each) => labels[each] === value),
    )
    if (nearKey === undefined) continue
    const { [key]: _, ...rest } = service.selector
    return { ...rest, [nearKey]: value }
  }
  return undefined
}

/** Two letters that changed places are two edits, also in a short word. */
const isNear = (wanted: string, has: string): boolean =>
  nearestNames(wanted, [has]).length > 0 || sorted(wanted.toLowerCase()) === sorted(has.toLowerCase())

const sorted = (text: string): string => [...text].sort().join('')

function readinessFindings(path: string, service: KubernetesService, { pods }: KubernetesFacts): Finding[] {
  if (!('value' in pods) || pods.value.length === 0 || pods.value.some(({ isReady }) => isReady)) return []
  const [namespace] = namesOf(path)
  const listed = pods.value.slice(0, 3).map(({ name, state }) => `${name}: ${state}`)
  const rest = pods.value.length > 3 ? `, and ${pods.value.length - 3} more` : ''
  const what = `No pod that its selector (${selectorText(service)}) matches is ready (${listed.join(', ')}${rest}).`
  const command = `kubectl -n ${namespace} describe pod ${word(pods.value[0]?.name ?? '')}`
  if (!service.publishNotReadyAddresses) return [found('KPNG-K003', what, { command })]
  return [
    found('KPNG-K009', `${what} They get connections all the same: publishNotReadyAddresses is set.`, { command }),
  ]
}

function targetPortFindings(path: string, service: KubernetesService, { pods }: KubernetesFacts): Finding[] {
  if (!('value' in pods) || pods.value.length === 0) return []
  const [namespace, name] = namesOf(path)
  return service.ports.flatMap(({ targetPort, protocol }, index): Finding[] => {
    const declared = pods.value.flatMap(({ ports }) => ports).filter((port) => port.protocol === protocol)
    const repair = (to: string | number) =>
      `kubectl -n ${namespace} patch service ${name} --type=json -p ${word(JSON.stringify([{ op: 'replace', path: `/spec/ports/${index}/targetPort`, value: to }]))}`
    const show = `kubectl -n ${namespace} get pods -l ${word(selectorText(service))} -o jsonpath='{.items[*].spec.containers[*].ports}'`
    if (typeof targetPort === 'number') {
      const numbers = [...new Set(declared.map(({ number }) => number))]
      if (numbers.length === 0 || numbers.includes(targetPort)) return []
      const what = `Its targetPort ${targetPort} is not declared by its pods: they declare ${numbers.join(', ')}.`
      return [found('KPNG-K005', what, { command: numbers.length === 1 ? repair(numbers[0] as number) : show })]
    }
    if (declared.some((port) => port.name === targetPort)) return []
    const names = [...new Set(declared.flatMap((port) => (port.name === '' ? [] : [port.name])))]
    const near =
      names.find((each) => each.toLowerCase() === targetPort.toLowerCase()) ??
      (names.length === 1 ? names[0] : nearestNames(targetPort, names)[0])
    const known = names.length > 0 ? `Their ports are named ${names.join(', ')}.` : 'Their ports have no names.'
    const what = `Its targetPort "${targetPort}" is a name that no container of its pods has. ${known}`
    return [found('KPNG-K004', what, { command: near === undefined ? show : repair(near) })]
  })
}

function loadBalancerFindings(path: string, { awaitsLoadBalancer }: KubernetesService): Finding[] {
  if (!awaitsLoadBalancer) return []
  const [namespace, name] = namesOf(path)
  const what = 'It is of type LoadBalancer, and no load balancer has given it an address.'
  return [found('KPNG-K007', what, { command: `kubectl -n ${namespace} describe service ${name}` })]
}

function policyFindings(path: string, { networkPolicies }: KubernetesFacts): Finding[] {
  if (!('value' in networkPolicies) || networkPolicies.value.length === 0) return []
  const [namespace] = namesOf(path)
  const names = networkPolicies.value
  const what = `${counted(names.length, 'NetworkPolicy selects', 'NetworkPolicies select')} its pods for incoming traffic (${names.slice(0, 3).join(', ')}${names.length > 3 ? ' …' : ''}). They may keep clients out; kpng does not judge them.`
  return [
    found('KPNG-K008', what, {
      command: `kubectl -n ${namespace} describe networkpolicy ${names.slice(0, 3).map(word).join(' ')}`,
    }),
  ]
}

/** What nobody could say, as sentences. */
export function whatIsUnknown({ selection, kubernetes, service }: Facts): string[] {
  const sentences: string[] = []
  if ('unknown' in selection) sentences.push(`Which endpoints are left out: ${selection.unknown}`)
  if ('unknown' in kubernetes)
    return [...sentences, `What the objects in Kubernetes say: ${kubernetes.unknown}`].map(ended)
  const { value } = kubernetes
  if (!value.service || value.service.notServed !== undefined) return sentences.map(ended)
  const namespace = service.split('/')[0]
  const has = Object.keys(value.service.selector).length > 0
  if (has && 'unknown' in value.pods) sentences.push(`Its pods: ${value.pods.unknown}`)
  if (has && 'unknown' in value.networkPolicies)
    sentences.push(`NetworkPolicies in ${namespace}: ${value.networkPolicies.unknown}`)
  return sentences.map(ended)
}

const ended = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`)
