import { type AttributeToWrite, MessageBuffer } from '../netlink/buffer.js'
import { NLM_F_APPEND, NLM_F_CREATE } from '../netlink/constants.js'
import { nftMessage } from './constants.js'
import { type ChainPath, splitSetPath } from './element.js'
import { type Expression, expressionAttributes } from './expression.js'
import { familyNumber, type TableFamily } from './family.js'
import { type Hook, type Ruleset, rulesetVersion } from './ruleset.js'
import { markerAttributes, setAttributes } from './set.js'
import { nftType } from './socket.js'

// Tables, sets, chains and rules in netlink messages.

/** A table of nftables. */
export interface TableAt {
  readonly family: TableFamily
  readonly name: string
}

/** The attribute with the table's name, in every kind of message. */
const TABLE = 1
const SET_NAME = 2
const SET_ID = 10
const CHAIN_NAME = 3
const CHAIN_HOOK = 4
const CHAIN_POLICY = 5
const CHAIN_TYPE = 7
const RULE_CHAIN = 2
const RULE_EXPRESSIONS = 4
const LIST_ELEMENT = 1

const policyAccept = 1

const hookNumber: Readonly<Record<Hook['name'], number>> = {
  prerouting: 0,
  input: 1,
  forward: 2,
  output: 3,
  postrouting: 4,
}

/** A table without elements: its sets, its chains, and then its rules, because they refer to both. */
export function writeTableWhole(buffer: MessageBuffer, family: TableFamily, ruleset: Ruleset): void {
  const at = { family, name: ruleset.tableName }
  writeTable(buffer, at)
  for (const [name, shape] of ruleset.sets[family]) writeSet(buffer, at, name, setAttributes(family, shape))
  const chains = ruleset.chains(family)
  writeMarker(buffer, at, rulesetVersion(family, ruleset, chains))
  for (const { name, hook } of chains) writeChain(buffer, at, name, hook)
  for (const { name, rules } of chains) {
    for (const [index, rule] of rules.entries()) {
      // In a chain that draws an endpoint, most rules equal the rule before them.
      if (rule === rules[index - 1]) buffer.repeat()
      else writeRule(buffer, at, name, rule.expressions)
    }
  }
}

/** Makes a table if it does not exist. */
export const writeTable = (buffer: MessageBuffer, at: TableAt): void =>
  writeMessage(buffer, at, nftMessage.NEWTABLE, NLM_F_CREATE, [])

/** Removes a table with everything in it. */
export const writeTableRemoval = (buffer: MessageBuffer, at: TableAt): void =>
  writeMessage(buffer, at, nftMessage.DELTABLE, 0, [])

/** A set without elements whose name says something. */
export const writeMarker = (buffer: MessageBuffer, at: TableAt, name: string): void =>
  writeSet(buffer, at, name, markerAttributes)

function writeSet(buffer: MessageBuffer, at: TableAt, name: string, attributes: readonly AttributeToWrite[]): void {
  // The number is required. Messages of the same transaction could refer to the set by it; ours use the name.
  const identity: AttributeToWrite[] = [
    [SET_NAME, `${name}\0`],
    [SET_ID, buffer.sequence],
  ]
  writeMessage(buffer, at, nftMessage.NEWSET, NLM_F_CREATE, [...identity, ...attributes])
}

export function writeChain(buffer: MessageBuffer, at: TableAt, name: string, hook?: Hook): void {
  const hookAttributes: AttributeToWrite[] = hook
    ? [
        [
          CHAIN_HOOK,
          [
            [1, hookNumber[hook.name]],
            [2, hook.priority],
          ],
        ],
        [CHAIN_POLICY, policyAccept],
        [CHAIN_TYPE, `${hook.type}\0`],
      ]
    : []
  writeMessage(buffer, at, nftMessage.NEWCHAIN, NLM_F_CREATE, [[CHAIN_NAME, `${name}\0`], ...hookAttributes])
}

/** Removes a chain with its rules. */
export const writeChainRemoval = (buffer: MessageBuffer, at: TableAt, name: string): void =>
  writeMessage(buffer, at, nftMessage.DELCHAIN, 0, [[CHAIN_NAME, `${name}\0`]])

/** Appends a rule to a chain. */
export const writeRule = (
  buffer: MessageBuffer,
  at: TableAt,
  chain: string,
  expressions: readonly Expression[],
): void =>
  writeMessage(buffer, at, nftMessage.NEWRULE, NLM_F_CREATE | NLM_F_APPEND, [
    [RULE_CHAIN, `${chain}\0`],
    [RULE_EXPRESSIONS, expressionList(expressions)],
  ])

/** A chain that elements refer to, with its rules. */
export function writeExtraChain(buffer: MessageBuffer, ruleset: Ruleset, path: ChainPath): void {
  const { family, name: chain } = splitSetPath(path)
  const at = { family, name: ruleset.tableName }
  writeChain(buffer, at, chain)
  for (const { expressions } of ruleset.extraChain?.(family, chain) ?? []) writeRule(buffer, at, chain, expressions)
}

/** The expressions of a rule, as bytes. */
export function expressionBytes(expressions: readonly Expression[]): Buffer {
  const buffer = new MessageBuffer(1)
  buffer.attributes(expressionList(expressions))
  return buffer.bytes
}

/** The expressions of a rule as the kernel reads and returns them. */
const expressionList = (expressions: readonly Expression[]): AttributeToWrite[] =>
  expressions.map((expression) => [LIST_ELEMENT, expressionAttributes(expression)])

function writeMessage(
  buffer: MessageBuffer,
  { family, name }: TableAt,
  message: number,
  flags: number,
  attributes: readonly AttributeToWrite[],
): void {
  buffer.beginNetfilter(nftType(message), flags, familyNumber[family])
  buffer.text(TABLE, name)
  buffer.attributes(attributes)
  buffer.end()
}
