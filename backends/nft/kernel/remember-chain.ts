import { MessageBuffer } from '@kpng/linux'
import type { ChainPath } from '../elements/element.js'
import type { TableFamily } from '../rules/family.js'
import { rememberedSeconds, splitSetPath } from '../rules/names.js'
import { rememberRules } from '../rules/skeleton.js'
import { expressionList, writeChain, writeRule } from './skeleton-messages.js'

// The chains that remember clients. They are the only rules that are made at run time, in the same transaction as the elements that
// refer to them.

export function writeRememberChain(buffer: MessageBuffer, table: string, path: ChainPath): void {
  const { family, name: chain } = splitSetPath(path)
  const at = { family, name: table }
  writeChain(buffer, at, chain)
  for (const { expressions } of rememberRules(family, rememberedSeconds(chain) ?? 0)) {
    writeRule(buffer, at, chain, expressions)
  }
}

/** The expressions of each rule of a chain that remembers for this long, as bytes. */
export const rememberExpressions = (family: TableFamily, seconds: number): Buffer[] =>
  rememberRules(family, seconds).map(({ expressions }) => {
    const buffer = new MessageBuffer(1)
    buffer.attributes(expressionList(expressions))
    return buffer.bytes
  })
