import { create } from '@bufbuild/protobuf'
import { defaultAffinitySeconds, localv1 } from '@kpng/api'
import { type Report, shown } from './fields.js'

/** As in the API server: a day. */
const longestAffinitySeconds = 86_400

/** Affinity by the client's address. A time that makes no sense is reported, and the default is taken (checklist 37, 38). */
export function clientIpAffinity(
  timeoutSeconds: unknown,
  field: string,
  report: Report,
): localv1.Service['sessionAffinity'] {
  const given = timeoutSeconds ?? defaultAffinitySeconds
  const usable = isAffinityTime(given)
  if (!usable) {
    report(
      `${field} is ${shown(given)}; 1 to ${longestAffinitySeconds} was expected. ${defaultAffinitySeconds} is taken.`,
    )
  }
  const value = create(localv1.ClientIPAffinitySchema, { timeoutSeconds: usable ? given : defaultAffinitySeconds })
  return { case: 'clientIp', value }
}

const isAffinityTime = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= longestAffinitySeconds
