import type { Kinds } from '../kinds/index.js'
import type { Kind } from '../kinds/kind.js'
import { badRequest } from '../status/status.js'

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw badRequest(`the path of the request has a part that cannot be decoded: ${part}`)
  }
}

/** What a path of the API points at. */
export interface Route {
  kind: Kind
  /** Undefined: all namespaces, or a kind that has none. */
  namespace: string | undefined
  /** Undefined: the collection. */
  name: string | undefined
  subresource: string
}

/** `/api/v1/namespaces/x/services/y/status` and its like; undefined when there is nothing. */
export function routeOf(pathname: string, kinds: Kinds): Route | undefined {
  const parts = pathname
    .split('/')
    .filter((part) => part !== '')
    .map(decoded)
  const root = parts.shift()
  const group = root === 'apis' ? (parts.shift() ?? '') : ''
  if (root !== 'api' && root !== 'apis') return undefined
  const version = parts.shift() ?? ''
  let namespace: string | undefined
  if (parts[0] === 'namespaces' && parts.length > 2 && !['status', 'finalize'].includes(parts[2] ?? '')) {
    namespace = parts[1]
    parts.splice(0, 2)
  }
  const [plural = '', name, subresource = '', extra] = parts
  const kind = kinds.byResource(group, version, plural)
  if (!kind || extra !== undefined || (namespace !== undefined && !kind.namespaced)) return undefined
  if (kind.namespaced && name !== undefined && namespace === undefined) return undefined
  return { kind, namespace, name, subresource }
}
