import type { Log } from '@kpng/api'
import { KpngError } from '@kpng/api'
import type { Kind } from '../kinds/kind.js'
import type { Registry } from '../registry/registry.js'
import type { EventRecorder } from './events.js'

/** What every controller is given. */
export interface ControllerContext {
  registry: Registry
  events: EventRecorder
  log: Log
}

export interface Controller {
  close(): void | Promise<void>
}

export function kindNamed(registry: Registry, apiVersion: string, name: string): Kind {
  const kind = registry.kinds.byKind(apiVersion, name)
  if (!kind) throw new KpngError('invalid', `The playground has no kind ${name} in ${apiVersion}; see kinds/index.ts.`)
  return kind
}

/** `namespace/name` of a store key. */
export const splitKey = (key: string): { namespace: string; name: string } => {
  const slash = key.indexOf('/')
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}
