import { type EndpointReason, endpointReasons } from './agent.js'

/** What a change did to one Service. */
export interface ServiceDifference {
  /** `namespace/name` */
  readonly service: string
  /** `changed` if it existed before and exists now. */
  readonly what: 'new' | 'deleted' | 'changed'
  /** Addresses of endpoints that are used since the change. */
  readonly added: readonly string[]
  /** Addresses of endpoints that are no longer used, and why if it is known. `gone`: the endpoint does not exist any more. */
  readonly removed: readonly { readonly ip: string; readonly why?: EndpointReason | 'gone' | undefined }[]
}

/** `10.244.3.4 of default/web is not ready` */
export function changeSentence({ service, what, added, removed }: ServiceDifference): string {
  if (what === 'deleted') return `${service} was deleted`
  if (what === 'new') return `${service} is new, with ${counted(added.length)}`
  const [gone] = removed
  const [come] = added
  if (gone && come) return `${service}: ${counted(added.length)} more, ${removed.length} fewer`
  if (gone && removed.length > 1)
    return `${counted(removed.length)} of ${service} are no longer used${commonReason(removed)}`
  if (come && added.length > 1) return `${counted(added.length)} of ${service} are used now`
  if (gone) return `${gone.ip} of ${service} ${endings(gone.why)}`
  if (come) return `${come} of ${service} is used now`
  return `${service} was changed`
}

const counted = (count: number): string => (count === 1 ? '1 endpoint' : `${count} endpoints`)

function endings(why: EndpointReason | 'gone' | undefined): string {
  switch (why) {
    case undefined:
      return 'is no longer used'
    case 'gone':
      return 'is gone'
    case 'not-ready':
      return 'is not ready'
    case 'terminating':
      return 'is terminating'
    default:
      return `is no longer used: ${endpointReasons[why]}`
  }
}

function commonReason(removed: ServiceDifference['removed']): string {
  const why = removed[0]?.why
  if (why === undefined || removed.some((each) => each.why !== why)) return ''
  return why === 'gone' ? ': they are gone' : ` (${endpointReasons[why]})`
}
