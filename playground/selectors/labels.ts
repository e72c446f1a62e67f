import { type LabelRequirement, type Labels, messageOf, parseLabelSelector as parse } from '@kpng/api'
import { badRequest } from '../status/status.js'

export function parseLabelSelector(text: string): LabelRequirement[] {
  try {
    return parse(text)
  } catch (error) {
    throw badRequest(messageOf(error))
  }
}

/** `a=b,c=d` */
export const labelsText = (labels: Labels = {}): string =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .sort()
    .join(',')

/** `spec.selector` of a Service: every label must be equal. */
export const matchesAll = (wanted: Labels, labels: Labels = {}): boolean =>
  Object.entries(wanted).every(([key, value]) => labels[key] === value)
