import { type LogFields, messageOf } from '@kpng/api'
import { type Resource, ruleOf } from './resource.js'
import { StatusError } from './status-error.js'
import { WatchContentError } from './watch.js'

/**
 * What to do after a failure:
 * - `resume`: try again where we were
 * - `relist`: what we know is too old, list again and compare
 * - `start over`: the server knows less than it did: list again, and take no version that we know for the same content
 * - `absent`: the server does not have this optional resource: nothing of it exists
 * - `rarely`: the resource is optional and refused: look again now and then
 * - `without field selector`: the server cannot select by that field
 */
export type NextStep = 'resume' | 'relist' | 'start over' | 'absent' | 'rarely' | 'without field selector'

export interface Failure {
  readonly next: NextStep
  readonly level: 'error' | 'warn' | 'detail'
  readonly message: string
  readonly fields: LogFields
  /** The server asks not to be bothered for this long. */
  readonly retryAfterMs?: number
}

/** Judges an error by what the API server can have meant. */
export function judge(error: unknown, resource: Resource): Failure {
  const fields = { resource: resource.name, error: messageOf(error) }
  if (error instanceof WatchContentError) {
    return { next: 'relist', level: 'error', message: 'A watch cannot be understood: listing again', fields }
  }
  if (!(error instanceof StatusError)) {
    return { next: 'resume', level: 'error', message: 'Kubernetes cannot be read: trying again', fields }
  }
  const { status, said } = error
  // Too large: as after etcd was restored from a copy. It then gives out versions again that it gave out before, for other content.
  if (error.isExpired || /too large resource version/i.test(said)) {
    const message = 'The watch cannot go on from its version: listing again'
    return { next: error.isExpired ? 'relist' : 'start over', level: 'detail', message, fields }
  }
  if (status === 400 && resource.fieldSelector && /field label not supported/i.test(said)) {
    const message = 'The server cannot select by a field: selecting here'
    return { next: 'without field selector', level: 'detail', message, fields }
  }
  if (status === 403) return forbidden(resource, said)
  if (status === 404 && resource.optional) {
    const message = 'The server does not have an optional resource: going on without it'
    return { next: 'absent', level: 'detail', message, fields }
  }
  if (status === 404) {
    const api = resource.group === '' ? resource.version : `${resource.group}/${resource.version}`
    const message = 'The server does not have a resource that kpng needs: check that it is Kubernetes 1.21 or newer'
    return { next: 'resume', level: 'error', message, fields: { ...fields, api } }
  }
  if (status === 401) {
    const message = 'The API server does not accept the credentials: they were read again and tried once more'
    return { next: 'resume', level: 'error', message, fields }
  }
  const retry = error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }
  const busy = status === 429 || status >= 500
  const message = busy ? 'The API server is not able to answer now: trying again' : 'The API server refuses a request'
  return { next: 'resume', level: busy ? 'warn' : 'error', message, fields, ...retry }
}

function forbidden(resource: Resource, said: string): Failure {
  const message = resource.optional
    ? 'The API server does not allow to watch an optional resource: going on without it. To have it, add this rule to the ClusterRole'
    : 'The API server does not allow to watch a resource: add this rule to the ClusterRole'
  return {
    next: resource.optional ? 'rarely' : 'resume',
    level: resource.optional ? 'warn' : 'error',
    message,
    fields: { resource: resource.name, rule: ruleOf(resource), answer: said },
  }
}

/** Whether the server's answer to a streaming list means that it has none: then pages are asked for. */
export function refusesStreaming(error: unknown): boolean {
  if (!(error instanceof StatusError)) return false
  // 1.27 and newer without the feature, and aggregated servers: 422. Older ones forbid resourceVersionMatch in watches.
  if (/sendInitialEvents|resourceVersionMatch/.test(error.said)) return error.status >= 400 && error.status < 500
  return [400, 405, 406, 422].includes(error.status) && !/field label not supported/i.test(error.said)
}
