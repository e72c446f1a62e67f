import { createHash, type Hash } from 'node:crypto'
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { endpointBytes, globalv1, KpngError, localv1, messageOf, servicePath } from '@kpng/api'
import type { ChangeSet, NodeView, ServiceEndpoints } from '@kpng/client'

// The file: a line of JSON that says whose state it is, then one record per message (4 bytes length, 1 byte set, the encoded
// message), then the SHA-256 of everything before it. The endpoints of a service follow it, in the order of the view.

/** Whose state it is. A file of another node or of another cluster must never be served. */
export interface CacheOwner {
  readonly node: string
  /** The API server or the core that the state comes from, as text. */
  readonly origin: string
}

export interface CachedState {
  readonly savedAtMs: number
  readonly services: number
  /** The whole state, as if the source had sent it. */
  readonly changeSet: ChangeSet
}

const format = 'kpng-state-cache'
const version = 1
const digestBytes = 32
const recordHead = 5

/** So much is encoded or decoded at once; then others get their turn. */
const sliceBytes = 64 * 1024
const sliceMs = 1

/**
 * Replaces the file: readers see the whole old state or the whole new one. Makes the file's folder, but not the one above it.
 * @param pause is waited for after each slice
 */
export async function writeCacheFile(
  path: string,
  owner: CacheOwner,
  view: NodeView,
  pause: () => Promise<unknown> = async () => {},
): Promise<void> {
  const folder = dirname(path)
  await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  const temporary = `${path}.tmp`
  // What a crash left there. A new file is made, so that nobody else's link is followed.
  await rm(temporary, { force: true })
  const handle = await open(temporary, 'wx', 0o600)
  try {
    const hash = createHash('sha256')
    for (const slice of slicesOf(owner, view, hash)) {
      await handle.write(slice)
      await pause()
    }
    await handle.write(hash.digest())
    await handle.sync()
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {})
    throw error
  } finally {
    await handle.close()
  }
  await rename(temporary, path)
  await syncFolder(folder)
}

/** Without it a power failure may bring the old file back. Windows cannot do it, and need not. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder).catch(() => undefined)
  await handle?.sync().catch(() => {})
  await handle?.close()
}

function* slicesOf({ node, origin }: CacheOwner, view: NodeView, hash: Hash): Generator<Buffer> {
  const header = { format, version, node, origin, savedAt: new Date().toISOString(), services: view.services.size }
  let records: Buffer[] = [Buffer.from(`${JSON.stringify(header)}\n`)]
  let size = 0
  let beganAt = performance.now()
  const slice = () => {
    const bytes = Buffer.concat(records)
    hash.update(bytes)
    return bytes
  }
  for (const record of recordsOf(view)) {
    records.push(record)
    size += record.length
    if (size < sliceBytes && performance.now() - beganAt < sliceMs) continue
    yield slice()
    records = []
    size = 0
    beganAt = performance.now()
  }
  yield slice()
}

/** The view changes while it is written, but what it holds does not: it is all taken at the start. */
function recordsOf({ node, serviceCidrs, services }: NodeView): Generator<Buffer> {
  return encoded([...(node ? [node] : [])], [...serviceCidrs.values()], [...services.values()])
}

function* encoded(
  nodes: readonly globalv1.Node[],
  serviceCidrs: readonly localv1.ServiceCIDR[],
  services: readonly { readonly service: localv1.Service; readonly endpoints: readonly localv1.Endpoint[] }[],
): Generator<Buffer> {
  for (const node of nodes) yield record(localv1.Set.NODES, toBinary(globalv1.NodeSchema, node))
  for (const cidr of serviceCidrs) yield record(localv1.Set.SERVICE_CIDRS, toBinary(localv1.ServiceCIDRSchema, cidr))
  for (const { service, endpoints } of services) {
    yield record(localv1.Set.SERVICES, toBinary(localv1.ServiceSchema, service))
    for (const endpoint of endpoints) yield record(localv1.Set.ENDPOINTS, endpointBytes(endpoint))
  }
}

function record(set: localv1.Set, bytes: Uint8Array): Buffer {
  const head = Buffer.alloc(recordHead)
  head.writeUInt32BE(bytes.length)
  head.writeUInt8(set, 4)
  return Buffer.concat([head, bytes])
}

/** Undefined if there is no file. Throws a KpngError that says why a file cannot be used. */
export async function readCacheFile(path: string, owner: CacheOwner): Promise<CachedState | undefined> {
  let content: Buffer
  try {
    content = await readFile(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new KpngError('unavailable', `it cannot be read: ${messageOf(error)}`, { cause: error })
  }
  const headerEnd = content.indexOf(10)
  const header = headerOf(content.subarray(0, Math.max(headerEnd, 0)))
  checkOwner(header, owner)
  const body = content.subarray(0, -digestBytes)
  const isWhole = createHash('sha256').update(body).digest().equals(content.subarray(-digestBytes))
  if (!isWhole) throw new KpngError('invalid', 'it is damaged: its checksum is wrong')
  const state = new CachedView()
  let beganAt = performance.now()
  for (const [set, bytes] of recordsIn(body.subarray(headerEnd + 1))) {
    state.add(set, bytes)
    if (performance.now() - beganAt < sliceMs) continue
    await setImmediate()
    beganAt = performance.now()
  }
  return {
    savedAtMs: Date.parse(header.savedAt),
    services: header.services,
    changeSet: state,
  }
}

interface Header extends CacheOwner {
  readonly version: number
  readonly savedAt: string
  readonly services: number
}

function headerOf(line: Buffer): Header {
  try {
    const header = JSON.parse(line.toString('utf8'))
    if (header?.format === format) return header
  } catch {}
  throw new KpngError('invalid', 'it is not a state cache of kpng')
}

function checkOwner(header: Header, { node, origin }: CacheOwner): void {
  const expected = { version, node, origin }
  const names = { version: 'format version', node: 'node', origin: 'source' }
  for (const key of ['version', 'node', 'origin'] as const) {
    if (header[key] === expected[key]) continue
    throw new KpngError('invalid', `it is of another ${names[key]} (${header[key]}, not ${expected[key]})`)
  }
}

function* recordsIn(bytes: Buffer): Generator<[localv1.Set, Buffer]> {
  for (let at = 0; at < bytes.length; ) {
    const end = at + recordHead + bytes.readUInt32BE(at)
    yield [bytes.readUInt8(at + 4), bytes.subarray(at + recordHead, end)]
    at = end
  }
}

/** What the records say. */
class CachedView implements ChangeSet {
  readonly reset = true
  readonly triggers = []
  node: globalv1.Node | undefined
  readonly serviceCidrs = new Map<string, localv1.ServiceCIDR>()
  readonly services = new Map<string, ServiceEndpoints>()
  #endpoints: localv1.Endpoint[] = []

  add(set: localv1.Set, bytes: Buffer): void {
    if (set === localv1.Set.NODES) this.node = fromBinary(globalv1.NodeSchema, bytes)
    else if (set === localv1.Set.SERVICE_CIDRS) {
      const cidr = fromBinary(localv1.ServiceCIDRSchema, bytes)
      this.serviceCidrs.set(cidr.name, cidr)
    } else if (set === localv1.Set.SERVICES) {
      const service = fromBinary(localv1.ServiceSchema, bytes)
      this.#endpoints = []
      this.services.set(servicePath(service.namespace, service.name), { service, endpoints: this.#endpoints })
    } else if (set === localv1.Set.ENDPOINTS) this.#endpoints.push(fromBinary(localv1.EndpointSchema, bytes))
  }
}
