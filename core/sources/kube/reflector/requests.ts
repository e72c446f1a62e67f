import type { KubeConnection } from '../credentials/index.js'
import type { Resource } from './resource.js'
import type { ReflectorTiming } from './timing.js'

/** What every request of a reflector needs. */
export interface RequestContext {
  readonly connection: KubeConnection
  readonly resource: Resource
  readonly timing: ReflectorTiming
}

/** The selectors of a resource, as query parameters. */
export function selectorsOf({ labelSelector, fieldSelector }: Resource): Record<string, string> {
  return { ...(labelSelector && { labelSelector }), ...(fieldSelector && { fieldSelector }) }
}

/** A controller that is also aborted by the signal, until `unlink`. */
export function linkedController(signal: AbortSignal): { controller: AbortController; unlink: () => void } {
  const controller = new AbortController()
  const abort = () => controller.abort(signal.reason)
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  return { controller, unlink: () => signal.removeEventListener('abort', abort) }
}
