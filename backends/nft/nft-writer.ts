import { parseCidr } from './address.js'
import type { ElementMap } from './element.js'
import { elementCommands, endpointBytes, fieldBytes } from './element-text.js'
import { type SetPath, type SetShape, shapeOf, splitSetPath, tableName } from './names.js'
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

  async read(path: SetPath): Promise<ElementMap> {
    const { family, name } = splitSetPath(path)
    const shape = shapeOf(name)
    const listed = await this.#nft.list(shape.data ? 'map' : 'set', family, tableName, name)
    return elementsInJson(listed, shape)
  }

  outline: Writer['outline'] = (family) => this.#nft.outline(family)

  close(): void {}
}

/** The elements in the JSON of `nft -j list set` or `list map`. What cannot be read, since it is not ours, is left out. */
export function elementsInJson(listed: unknown, shape: SetShape): ElementMap {
  const elements: ElementMap = new Map()
  for (const entry of objects(property(listed, 'nftables'))) {
    for (const element of list(property(property(entry, shape.data ? 'map' : 'set'), 'elem'))) {
      const [rawKey, rawData] = shape.data ? list(element) : [element, undefined]
      const key = keyIn(property(property(rawKey, 'elem'), 'val') ?? rawKey, shape)
      const data = shape.data ? dataIn(rawData, shape) : ''
      if (key !== undefined && data !== undefined) elements.set(key, data)
    }
  }
  return elements
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

const objects = list
