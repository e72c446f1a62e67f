import { KpngError } from './error.js'

export type Labels = Readonly<Record<string, string>>

/** `a=b,c!=d,e in (f,g),h notin (i),j,!k`: all requirements must hold. */
export interface LabelRequirement {
  /** The label. */
  key: string
  /** As in a label selector of Kubernetes. */
  operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
  /** For `In` and `NotIn`; otherwise empty. */
  values: readonly string[]
}

const keyPattern = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/

/** Splits at commas that are outside parentheses. */
function splitRequirements(text: string): string[] {
  const parts: string[] = []
  let depth = 0
  let start = 0
  for (const [index, character] of [...text].entries()) {
    if (character === '(') depth++
    if (character === ')') depth--
    if (character === ',' && depth === 0) {
      parts.push(text.slice(start, index))
      start = index + 1
    }
  }
  parts.push(text.slice(start))
  return parts.map((part) => part.trim()).filter((part) => part !== '')
}

function parseRequirement(text: string): LabelRequirement {
  const set = /^(\S+)\s+(in|notin)\s*\(([^)]*)\)$/.exec(text)
  if (set) {
    const [, key = '', operator, values = ''] = set
    return { key, operator: operator === 'in' ? 'In' : 'NotIn', values: values.split(',').map((value) => value.trim()) }
  }
  const compare = /^([^=!\s]+)\s*(==|=|!=)\s*(\S*)$/.exec(text)
  if (compare) {
    const [, key = '', operator, value = ''] = compare
    return { key, operator: operator === '!=' ? 'NotIn' : 'In', values: [value] }
  }
  if (text.startsWith('!')) return { key: text.slice(1).trim(), operator: 'DoesNotExist', values: [] }
  return { key: text, operator: 'Exists', values: [] }
}

/** Throws what kubectl says about a text that is none. */
export function parseLabelSelector(text: string): LabelRequirement[] {
  return splitRequirements(text).map((part) => {
    const requirement = parseRequirement(part)
    if (!keyPattern.test(requirement.key))
      throw new KpngError('usage', `unable to parse requirement: "${part}": "${requirement.key}" is not a label name`)
    return requirement
  })
}

function holds(requirement: LabelRequirement, labels: Labels): boolean {
  const value = Object.hasOwn(labels, requirement.key) ? labels[requirement.key] : undefined
  switch (requirement.operator) {
    case 'In':
      return value !== undefined && requirement.values.includes(value)
    case 'NotIn':
      return value === undefined || !requirement.values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
  }
}

export const matchesLabels = (requirements: readonly LabelRequirement[], labels: Labels = {}): boolean =>
  requirements.every((requirement) => holds(requirement, labels))
