import type { Outcome } from '@kpng/linux/testing'
import { addressOf, type Host, ownExternalAddress, secondAddress } from '../addresses.js'
import type { Expectation, Reached } from '../cases/case.js'

export interface Verdict {
  readonly right: boolean
  /** What was seen, in the words of the truth table. */
  readonly got: string
}

const nodeAddresses = new Set(
  [addressOf['node-a'], secondAddress, ownExternalAddress].flatMap((address) => Object.values(address)),
)

const isOwn = (client: Host, address: string): boolean =>
  client === 'node-a' ? nodeAddresses.has(address) : Object.values(addressOf[client]).includes(address)

/** Whether the outcomes of a cell's tries are what was expected. Pure. */
export function evaluate(expect: Expectation, client: Host, outcomes: readonly Outcome[]): Verdict {
  const got = outcomesText(client, outcomes)
  if (expect.outcome === 'interrupted') return { right: outcomes.some((outcome) => !isServed(outcome)), got }
  const right = outcomes.length > 0 && outcomes.every((outcome) => isRight(expect, client, outcome))
  return { right: right && (expect.outcome !== 'reached' || hitsRight(expect, outcomes)), got }
}

/** By a pod, and not by the gateway, where packets end that nobody serves. */
export const isServed = (outcome: Outcome): boolean => outcome.outcome === 'reached' && outcome.server !== 'gateway'

/** Whether one connection of a cell is what was expected. Pure. */
export function isRight(expect: Expectation, client: Host, outcome: Outcome): boolean {
  switch (expect.outcome) {
    case 'passed':
      return outcome.outcome === 'reached' && outcome.server === 'gateway'
    case 'unserved':
      return outcome.outcome !== 'broken' && (outcome.outcome !== 'reached' || outcome.server === 'gateway')
    case 'reached':
      return (
        outcome.outcome === 'reached' &&
        expect.servers.some((server) => matches(server, outcome)) &&
        (expect.source !== 'kept' || isOwn(client, outcome.from)) &&
        (expect.source !== 'node' || nodeAddresses.has(outcome.from))
      )
    default:
      return outcome.outcome === expect.outcome
  }
}

const matches = (server: string, outcome: Extract<Outcome, { outcome: 'reached' }>): boolean =>
  server === outcome.server || server === `${outcome.server}:${outcome.port}`

/** Which of the expected servers were hit. */
export const serversHit = ({ servers }: Reached, outcomes: readonly Outcome[]): string[] =>
  servers.filter((server) => outcomes.some((outcome) => outcome.outcome === 'reached' && matches(server, outcome)))

function hitsRight(expect: Reached, outcomes: readonly Outcome[]): boolean {
  const hit = serversHit(expect, outcomes).length
  switch (expect.hits ?? 'all') {
    case 'all':
      return hit === expect.servers.length
    case 'evenly':
      return expect.servers.every((server) => isFairShare(server, expect, outcomes))
    case 'one':
      return hit === 1
    case 'several':
      return hit > 1
    case 'some':
      return hit > 0
  }
}

/** Between two thirds and four thirds of an equal share. */
function isFairShare(server: string, { servers }: Reached, outcomes: readonly Outcome[]): boolean {
  const own = outcomes.filter((outcome) => outcome.outcome === 'reached' && matches(server, outcome)).length
  const fair = outcomes.length / servers.length
  return own > (fair * 2) / 3 && own < (fair * 4) / 3
}

/** What was seen, each different thing once, with how often when there were several. */
export function outcomesText(client: Host, outcomes: readonly Outcome[]): string {
  const counts = new Map<string, number>()
  for (const outcome of outcomes) {
    const text = outcomeText(client, outcome)
    counts.set(text, (counts.get(text) ?? 0) + 1)
  }
  if (counts.size === 1) return [...counts.keys()][0] as string
  return [...counts]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([text, count]) => `${count}× ${text}`)
    .join('; ')
}

function outcomeText(client: Host, outcome: Outcome): string {
  switch (outcome.outcome) {
    case 'reached': {
      if (outcome.server === 'gateway') return 'passed'
      const node = nodeAddresses.has(outcome.from) ? 'from the node' : undefined
      const source = node ?? (isOwn(client, outcome.from) ? 'source kept' : `from ${outcome.from}`)
      return `${outcome.server}:${outcome.port}, ${source}`
    }
    case 'broken':
      return `broken (${outcome.how})`
    default:
      return outcome.outcome
  }
}

/** An expectation in the words of the truth table. */
export function expectationText(expect: Expectation): string {
  if (expect.outcome !== 'reached') return expect.outcome
  const { servers, source, hits = 'all' } = expect
  const who =
    servers.length === 1
      ? servers[0]
      : `${{ all: '', evenly: 'evenly ', one: 'one of ', several: 'several of ', some: 'some of ' }[hits]}${servers.join(' ')}`
  return `${who}${{ kept: ', source kept', node: ', from the node', any: '' }[source]}`
}
