import type { EndpointRow, Verdict } from '@kpng/api'
import { batch, computed, effect, signal, untracked } from '@preact/signals'
import type { Row } from '../model/rows.js'
import { arrange, type Filter, filterOf, filterText, looksLikeAddress, type Order, testOf } from '../model/search.js'
import { currentRoute, route, routeQuery, setRouteQuery } from '../route.js'
import { ask } from './ask.js'
import { allRows, shape, version } from './cluster.js'

// Which Services the list and the map show: one filter for both.

export const query = signal('')
export const shownStates = signal<ReadonlySet<Verdict>>(new Set())
export const order = signal<Order>('worst')
/** While somebody points at the list, it keeps its order. */
export const isHeld = signal(false)

const found = signal<Filter['found']>(undefined)
export const test = computed(() => testOf({ query: query.value, states: shownStates.value, found: found.value }))
export const isFiltered = computed(() => test.value !== undefined)

/** Filtered and sorted. At once when asked for; after changes at most once per second, and not while it is held. */
export const shownRows = signal<readonly Row[]>([])

export function showAll(): void {
  query.value = ''
  shownStates.value = new Set()
}

export function toggleState(state: Verdict): void {
  const next = new Set(shownStates.peek())
  if (!next.delete(state)) next.add(state)
  shownStates.value = next
}

const refreshMs = 1000
const askAfterMs = 250

let refreshedAt = 0
let timer: ReturnType<typeof setTimeout> | undefined

function refresh(): void {
  clearTimeout(timer)
  timer = undefined
  refreshedAt = performance.now()
  shownRows.value = arrange(allRows(), test.peek(), order.peek())
}

/** Starts to follow the filter and the changes. */
export function followShown(): void {
  effect(() => {
    void test.value
    void order.value
    void shape.value
    refresh()
  })
  effect(() => {
    void version.value
    if (isHeld.value || timer !== undefined) return
    timer = setTimeout(refresh, Math.max(0, refreshMs - (performance.now() - refreshedAt)))
  })
  followAddresses()
  followAddressBar()
}

/** Browsers refuse an address that changes with each key. */
const addressAfterMs = 300

/** The filter is in the address of the page, so that it can be sent to somebody, and is still there after a reload. */
function followAddressBar(): void {
  const shown = () => filterText({ query: query.value, states: shownStates.value, order: order.value })
  effect(() => {
    const text = routeQuery.value
    if (route.value.page !== '' || text === '' || text === untracked(shown)) return
    const given = filterOf(text)
    batch(() => {
      query.value = given.query
      shownStates.value = given.states
      order.value = given.order
    })
  })
  let writing: ReturnType<typeof setTimeout> | undefined
  effect(() => {
    const text = shown()
    clearTimeout(writing)
    if (route.value.page !== '' || text === routeQuery.peek()) return
    writing = setTimeout(() => {
      if (currentRoute().page === '') setRouteQuery(text)
    }, addressAfterMs)
  })
}

/** Rows have no endpoints. An address that no row has is looked for among the endpoints that this node uses. */
function followAddresses(): void {
  let asking: ReturnType<typeof setTimeout> | undefined
  effect(() => {
    const address = query.value.trim().toLowerCase()
    clearTimeout(asking)
    if (!looksLikeAddress(address) || found.peek()?.address === address) return
    asking = setTimeout(async () => {
      if (shownRows.peek().length > 0) return
      const { endpoints } = await ask<{ endpoints: EndpointRow[] }>('v1/endpoints', {}).catch(() => ({ endpoints: [] }))
      const keys = endpoints
        .filter(({ ips }) => ips.includes(address))
        .map(({ namespace, service }) => `${namespace}/${service}`)
      if (keys.length > 0) found.value = { address, keys: new Set(keys) }
    }, askAfterMs)
  })
}
