import type { LiveService, Verdict } from '@kpng/api'
import type { Row } from './rows.js'
import { isVerdict, stateTexts, worstFirst } from './states.js'

// Which Services are shown, and in which order.

export type Test = (row: Row) => boolean
export type Order = 'worst' | 'recent' | 'name' | 'size'

export const orderTexts: Readonly<Record<Order, string>> = {
  worst: 'worst first',
  recent: 'last changed',
  name: 'name',
  size: 'most endpoints',
}

const hasNodePort = ({ ports }: LiveService) => ports.some((port) => port.includes(':'))

/** Words that are not searched as text. */
const words: Readonly<Record<string, (service: LiveService) => boolean>> = {
  ...Object.fromEntries(
    Object.keys(stateTexts).map((state) => [state, (service: LiveService) => service.verdict === state]),
  ),
  'no-endpoints': ({ endpoints }) => endpoints === 0,
  local: ({ internalTrafficPolicy, externalTrafficPolicy }) =>
    internalTrafficPolicy === 'Local' || externalTrafficPolicy === 'Local',
  affinity: ({ sessionAffinity }) => sessionAffinity,
  'node-port': hasNodePort,
  'load-balancer': ({ type }) => type === 'LoadBalancer',
  external: ({ externalIps }) => externalIps.length > 0,
  hints: ({ hints }) => hints,
  ranges: ({ sourceRanges }) => sourceRanges,
  udp: ({ ports }) => ports.some((port) => port.endsWith('/udp')),
  ipv6: ({ clusterIps }) => clusterIps.some((ip) => ip.includes(':')),
  findings: ({ findings }) => findings.length > 0,
}
export const searchWords: readonly string[] = Object.keys(words)

export interface Filter {
  readonly query: string
  /** Empty: all. */
  readonly states: ReadonlySet<Verdict>
  /** Services of an endpoint's address, which rows do not have. */
  readonly found?: { readonly address: string; readonly keys: ReadonlySet<string> } | undefined
}

/** Undefined: every row passes. All words of a query must match; `-word` must not. */
export function testOf({ query, states, found }: Filter): Test | undefined {
  const tests = query
    .toLowerCase()
    .split(/\s+/)
    .filter((token) => token !== '' && token !== '-')
    .map((token) => tokenTest(token, found))
  if (states.size > 0) tests.unshift(({ service }) => states.has(service.verdict))
  return tests.length < 2 ? tests[0] : (row) => tests.every((test) => test(row))
}

function tokenTest(token: string, found: Filter['found']): Test {
  if (token.startsWith('-')) {
    const test = tokenTest(token.slice(1), found)
    return (row) => !test(row)
  }
  const word = Object.hasOwn(words, token) ? words[token] : undefined
  if (word) return ({ service }) => word(service)
  if (found?.address === token) return (row) => found.keys.has(row.key) || row.searchText.includes(token)
  return (row) => row.searchText.includes(token)
}

/** @param rows in the order of namespace and name */
export function arrange(rows: readonly Row[], test: Test | undefined, order: Order): readonly Row[] {
  const filtered = test ? rows.filter(test) : rows
  switch (order) {
    case 'name':
      return filtered
    case 'recent':
      return filtered.toSorted((a, b) => compare(b.service.changedAt ?? '', a.service.changedAt ?? ''))
    case 'size':
      return filtered.toSorted((a, b) => sizeOf(b) - sizeOf(a))
    case 'worst': {
      const byState = new Map<Verdict, Row[]>(worstFirst.map((state) => [state, []]))
      for (const row of filtered) byState.get(row.service.verdict)?.push(row)
      return [...byState.values()].flat()
    }
  }
}

/** The filter and the order as they stand in the address of the page: `q=pay&state=refused,partly&order=name`. */
export function filterText({ query, states, order }: Omit<Filter, 'found'> & { readonly order: Order }): string {
  const text = new URLSearchParams()
  if (query.trim() !== '') text.set('q', query.trim())
  if (states.size > 0) text.set('state', [...states].sort().join())
  if (order !== 'worst') text.set('order', order)
  return text.toString().replaceAll('%2C', ',')
}

/** What it does not know is left out: an address may be of another version. */
export function filterOf(text: string): Omit<Filter, 'found'> & { readonly order: Order } {
  const given = new URLSearchParams(text)
  const order = given.get('order') ?? ''
  return {
    query: (given.get('q') ?? '').slice(0, longestQuery),
    states: new Set((given.get('state') ?? '').split(',').filter(isVerdict)),
    order: Object.hasOwn(orderTexts, order) ? (order as Order) : 'worst',
  }
}

/** Whoever sends an address may write anything. */
const longestQuery = 200

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
const sizeOf = ({ service }: Row) => service.total ?? service.endpoints

/** Whether a query may be an endpoint's address. */
export const looksLikeAddress = (query: string): boolean =>
  /^(\d{1,3}\.){3}\d{1,3}$/.test(query) || (/^[\da-f:]{4,}$/i.test(query) && query.includes(':'))
