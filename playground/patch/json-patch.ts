import { clone, equal } from '../objects/json.js'
import { isObject } from '../objects/types.js'
import { badRequest, StatusError } from '../status/status.js'

interface Operation {
  op: string
  path: string
  from?: string
  value?: unknown
}

const refuse = (message: string): never => {
  throw new StatusError(422, 'Invalid', `the server rejected our request due to an error in our request: ${message}`)
}

const parsePointer = (pointer: string): string[] => {
  if (pointer === '') return []
  if (!pointer.startsWith('/')) refuse(`the path "${pointer}" must start with "/"`)
  const parts = pointer
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  // Assigning to it would change the prototype of the object instead of adding a field.
  if (parts.includes('__proto__')) refuse(`the path "${pointer}" has a "__proto__" in it`)
  return parts
}

/**
 * One step down: the value under a name or index, or undefined if there is none. Only the object's own fields count: a path such as
 * `/constructor/prototype` must not lead to what all objects share.
 */
function child(container: unknown, name: string): unknown {
  if (Array.isArray(container)) return /^\d+$/.test(name) ? container[Number(name)] : undefined
  return isObject(container) && Object.hasOwn(container, name) ? container[name] : undefined
}

class Document {
  constructor(public root: unknown) {}

  get(pointer: string): unknown {
    return parsePointer(pointer).reduce(child, this.root)
  }

  #parent(pointer: string): [unknown, string] {
    const parts = parsePointer(pointer)
    const last = parts.pop() ?? ''
    return [parts.reduce(child, this.root), last]
  }

  add(pointer: string, value: unknown): void {
    if (pointer === '') {
      this.root = value
      return
    }
    const [container, name] = this.#parent(pointer)
    if (Array.isArray(container)) {
      const index = name === '-' ? container.length : /^\d+$/.test(name) ? Number(name) : -1
      if (index < 0 || index > container.length) refuse(`add operation does not apply: index "${name}" is out of range`)
      container.splice(index, 0, value)
    } else if (isObject(container)) container[name] = value
    else refuse(`add operation does not apply: doc is missing path: "${pointer}": missing value`)
  }

  remove(pointer: string, operation: string): void {
    const [container, name] = this.#parent(pointer)
    if (child(container, name) === undefined) {
      refuse(`${operation} operation does not apply: doc is missing path: "${pointer}": missing value`)
    }
    if (Array.isArray(container)) container.splice(Number(name), 1)
    else if (isObject(container)) delete container[name]
  }

  replace(pointer: string, value: unknown): void {
    const [container, name] = this.#parent(pointer)
    if (pointer !== '' && child(container, name) === undefined) {
      refuse(`replace operation does not apply: doc is missing key: ${pointer}: missing value`)
    }
    if (Array.isArray(container)) container[Number(name)] = value
    else this.add(pointer, value)
  }
}

function apply(document: Document, { op, path, from = '', value }: Operation): void {
  switch (op) {
    case 'add':
      document.add(path, clone(value))
      break
    case 'remove':
      document.remove(path, 'remove')
      break
    case 'replace':
      document.replace(path, clone(value))
      break
    case 'copy':
    case 'move': {
      const moved = document.get(from)
      if (moved === undefined) refuse(`${op} operation does not apply: doc is missing from path: "${from}"`)
      if (op === 'move') document.remove(from, 'move')
      document.add(path, clone(moved))
      break
    }
    case 'test':
      if (!equal(document.get(path) ?? null, value ?? null)) refuse(`testing path ${path} failed`)
      break
    default:
      refuse(`Unexpected kind: ${op}`)
  }
}

/** JSON patch, RFC 6902. All or nothing: the target itself is not touched. */
export function jsonPatch(target: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch))
    throw badRequest('a JSON patch must be a list of operations, like [{"op":"remove","path":"/a"}]')
  const document = new Document(clone(target))
  for (const operation of patch) {
    if (!isObject(operation) || typeof operation.op !== 'string' || typeof operation.path !== 'string') {
      throw badRequest('each operation of a JSON patch needs "op" and "path"')
    }
    apply(document, operation as unknown as Operation)
  }
  return document.root
}
