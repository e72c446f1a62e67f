import { parseCidr, parseIp } from '@kpng/api'
import type { ObjectMeta } from '../objects/types.js'
import type { Cause } from '../status/status.js'
import { forbiddenValue, invalidValue, requiredValue, tooLong } from './causes.js'

const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const rules = {
  label: {
    pattern: new RegExp(`^${label}$`),
    limit: 63,
    sentence: `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${label}')`,
  },
  label1035: {
    pattern: /^[a-z]([-a-z0-9]*[a-z0-9])?$/,
    limit: 63,
    sentence: `a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`,
  },
  subdomain: {
    pattern: new RegExp(`^${label}(\\.${label})*$`),
    limit: 253,
    sentence: `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${label}(\\.${label})*')`,
  },
  labelValue: {
    pattern: /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/,
    limit: 63,
    sentence: `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
  },
} as const

export type NameRule = keyof typeof rules

/** What is wrong with a name, in Kubernetes' words, or undefined if nothing is. */
export function nameProblem(rule: NameRule, value: string): string | undefined {
  const { pattern, limit, sentence } = rules[rule]
  if (value.length > limit) return `must be no more than ${limit} characters`
  return pattern.test(value) ? undefined : sentence
}

export function checkName(field: string, rule: NameRule, value: string): Cause[] {
  const problem = nameProblem(rule, value)
  return problem === undefined ? [] : [invalidValue(field, value, problem)]
}

const qualifiedPart = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/

function checkQualifiedName(field: string, key: string): Cause[] {
  const parts = key.split('/')
  const [name = '', prefix] = parts.reverse()
  if (parts.length > 2 || name.length > 63 || !qualifiedPart.test(name)) {
    const why =
      "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
    return [invalidValue(field, key, why)]
  }
  if (prefix !== undefined && nameProblem('subdomain', prefix)) {
    return [invalidValue(field, key, `prefix part ${nameProblem('subdomain', prefix)}`)]
  }
  return []
}

export function checkLabels(field: string, labels: Readonly<Record<string, string>> | undefined): Cause[] {
  return Object.entries(labels ?? {}).flatMap(([key, value]) => [
    ...checkQualifiedName(field, key),
    ...checkName(field, 'labelValue', value),
  ])
}

/** The rules that hold for the metadata of every kind. */
export function checkMeta(meta: ObjectMeta, rule: NameRule, namespaced: boolean): Cause[] {
  const causes: Cause[] = []
  if (!meta.name) causes.push(requiredValue('metadata.name', 'name or generateName is required'))
  else causes.push(...checkName('metadata.name', rule, meta.name))
  if (namespaced && !meta.namespace) causes.push(requiredValue('metadata.namespace'))
  if (!namespaced && meta.namespace) causes.push(forbiddenValue('metadata.namespace', 'not allowed on this type'))
  causes.push(...checkLabels('metadata.labels', meta.labels))
  let size = 0
  for (const [key, value] of Object.entries(meta.annotations ?? {})) {
    causes.push(...checkQualifiedName('metadata.annotations', key.toLowerCase()))
    size += key.length + value.length
  }
  if (size > 256 * 1024) causes.push(tooLong('metadata.annotations', 256 * 1024))
  return [...causes, ...checkEach('metadata.finalizers', meta.finalizers, checkQualifiedName)]
}

/** Checks each item of a list; the field is `field[0]` and so on. */
export const checkEach = <T>(
  field: string,
  items: readonly T[] | undefined,
  check: (field: string, item: T) => Cause[],
): Cause[] => (items ?? []).flatMap((item, index) => check(`${field}[${index}]`, item))

export function checkAddress(field: string, address: string): Cause[] {
  return parseIp(address)
    ? []
    : [invalidValue(field, address, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)')]
}

export function checkCidr(field: string, cidr: string): Cause[] {
  if (parseCidr(cidr)) return []
  return [invalidValue(field, cidr, 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)')]
}

export function checkPort(field: string, port: unknown): Cause[] {
  if (Number.isInteger(port) && Number(port) >= 1 && Number(port) <= 65535) return []
  return [invalidValue(field, port, 'must be between 1 and 65535, inclusive')]
}
