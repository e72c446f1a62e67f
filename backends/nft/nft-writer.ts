import { type Family, parseCidr } from './address.js'
import type { ElementMap, Elements } from './element.js'
import { elementCommands, endpointBytes, fieldBytes } from './element-text.js'
import { findShape, type SetPath, type SetShape, setPath, shapeOf, splitSetPath, tableName } from './names.js'
import type { NftCommand } from './nft-command.js'
import { rememberChainText } from './render.js'
import { isEmpty, type Transaction } from './transaction.js'
import type { ChainPath, Writer } from './writer.js'

/** Runs the nft command for each transaction: slower, but it needs nothing else. */
export class NftWriter implements Writer {
  readonly name = 'nft'
  readonly #nft: NftCommand

  constructor(nft: NftCommand) {
    this.#nft = nft
  }

  async commit(transaction: Transaction, newChains: readonly ChainPath[]): Promise<void> {
    if (isEmpty(transaction) && newChains.length === 0) return
    const parts: string[] = []
    for (const path of newChains) {
      const { family, name } = splitSetPath(path)
      parts.push(rememberChainText(family, name))
    }
    for (const [path, map] of transaction.remove) parts.push(...elementCommands('delete', path, map))
    for (const [path, map] of transaction.add) parts.push(...elementCommands('add', path, map))
    await this.#nft.apply(parts.join(''))
  }

  async removeChains(chains: readonly ChainPath[]): Promise<void> {
    const parts = chains.map((path) => {
      const { family, name } = splitSetPath(path)
      return `flush chain ${family} ${tableName} ${name}\ndelete chain ${family} ${tableName} ${name}\n`
    })
    await this.#nft.apply(parts.join(''))
  }

  async read(path: SetPath): Promise<ElementMap> {
    const { family, name } = splitSetPath(path)
    const listed = await this.#nft.list(shapeOf(name).data ? 'map' : 'set', family, tableName, name)
    return objectsIn(listed).get(name) ?? new Map()
  }

  async readAll(family: Family): Promise<Elements> {
    const elements: Elements = new Map()
    for (const kind of ['sets', 'maps']) {
      for (const [name, map] of objectsIn(await this.#nft.list(kind, family))) {
        if (map.size > 0 && !shapeOf(name).dynamic) elements.set(setPath(family, name), map)
      }
    }
    return elements
  }

  outline: Writer['outline'] = (family) => this.#nft.outline(family)

  close(): void {}
}

/** Our sets and maps, and what is in them, in the JSON of `nft -j list …`. What cannot be read, since it is not ours, is left out. */
export function objectsIn(listed: unknown): Map<string, ElementMap> {
  const found = new Map<string, ElementMap>()
  for (const entry of list(property(listed, 'nftables'))) {
    const object = property(entry, 'set') ?? property(entry, 'map')
    const name = property(object, 'name')
    const shape = typeof name === 'string' ? findShape(name) : undefined
    if (!shape || property(object, 'table') !== tableName) continue
    found.set(name as string, elementsIn(list(property(object, 'elem')), shape))
  }
  return found
}

function elementsIn(listed: readonly unknown[], shape: SetShape): ElementMap {
  const elements: ElementMap = new Map()
  for (const element of listed) {
    const [rawKey, rawData] = shape.data ? list(element) : [element, undefined]
    // An element with a time-out is wrapped once more.
    const key = keyIn(property(property(rawKey, 'elem'), 'val') ?? rawKey, shape)
    const data = shape.data ? dataIn(rawData, shape) : ''
    if (key !== undefined && data !== undefined) elements.set(key, data)
  }
  return elements
}

/** What the elements of one set of ours have counted, in the JSON of `nft -j list set`. */
export function packetsIn(listed: unknown): Map<string, number> {
  const packets = new Map<string, number>()
  for (const entry of list(property(listed, 'nftables'))) {
    const set = property(entry, 'set')
    const name = property(set, 'name')
    const shape = typeof name === 'string' ? findShape(name) : undefined
    if (!shape) continue
    for (const element of list(property(set, 'elem'))) {
      const counted = property(element, 'elem')
      const key = keyIn(property(counted, 'val'), shape)
      const count = property(property(counted, 'counter'), 'packets')
      if (key !== undefined && typeof count === 'number') packets.set(key, count)
    }
  }
  return packets
}

function keyIn(value: unknown, shape: SetShape): string | undefined {
  const fields = shape.key.length === 1 ? [value] : list(property(value, 'concat'))
  let first = ''
  let last = ''
  for (const [index, field] of shape.key.entries()) {
    const [from, to] = boundsIn(fields[index], (single) => fieldBytes(field, single))
    if (from === undefined || to === undefined) return undefined
    first += from
    last += to
  }
  return shape.interval ? first + last : first
}

/** A field is a value, a range, or a prefix. */
function boundsIn(value: unknown, bytes: (single: unknown) => string | undefined): (string | undefined)[] {
  const range = property(value, 'range')
  if (range !== undefined) return list(range).map(bytes)
  const prefix = property(value, 'prefix')
  if (prefix === undefined) return [bytes(value), bytes(value)]
  const cidr = parseCidr(`${property(prefix, 'addr')}/${property(prefix, 'len')}`)
  return [cidr?.first, cidr?.last]
}

function dataIn(value: unknown, shape: SetShape): string | undefined {
  if (shape.data === 'chain') {
    const target = property(property(value, 'goto'), 'target')
    return typeof target === 'string' ? target : undefined
  }
  const [address, port] = list(property(value, 'concat'))
  return endpointBytes(address, port)
}

const property = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
