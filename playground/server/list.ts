import { resourceOf } from '../kinds/kind.js'
import {
  badRequest,
  type Cause,
  expired,
  invalid,
  type StatusError,
  tooLargeResourceVersion,
} from '../status/status.js'
import type { Store, Stored } from '../storage/store.js'
import { forbiddenValue, invalidValue } from '../validation/causes.js'
import type { Selection } from './filter.js'
import type { ListMeta } from './representation.js'
import type { Route } from './route.js'

export interface Page {
  items: readonly Stored[]
  meta: ListMeta
}

interface ContinueToken {
  rv: number
  start: string
}

const encodeToken = (token: ContinueToken): string =>
  Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', ...token })).toString('base64url')

function decodeToken(text: string): ContinueToken {
  try {
    const token = JSON.parse(Buffer.from(text, 'base64url').toString()) as ContinueToken
    if (Number.isInteger(token.rv) && typeof token.start === 'string') return token
  } catch {
    // Told below, in the same words as for a token that parses but is not ours.
  }
  throw badRequest('continue key is not valid: the token was not made by this server; start the list again without it')
}

/** A resourceVersion of a request: a number, or undefined when none is given. */
export function versionOf(text: string | null): number | undefined {
  if (text === null || text === '') return undefined
  if (!/^\d+$/.test(text)) {
    const why = `strconv.ParseUint: parsing ${JSON.stringify(text)}: invalid syntax`
    throw invalid('', 'ListOptions', '', [invalidValue('resourceVersion', text, why)])
  }
  return Number(text)
}

export const invalidListOptions = (cause: Cause): StatusError => invalid('meta.k8s.io', 'ListOptions', '', [cause])

const tooOld =
  'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.'

function checkMatch(version: number | undefined, match: string | null): void {
  if (match === null || match === '') return
  const field = 'resourceVersionMatch'
  if (version === undefined)
    throw invalidListOptions(forbiddenValue(field, `${field} is forbidden unless resourceVersion is provided`))
  if (match !== 'Exact' && match !== 'NotOlderThan') {
    const message = `Unsupported value: ${JSON.stringify(match)}: supported values: "Exact", "NotOlderThan", ""`
    throw invalidListOptions({ reason: 'FieldValueNotSupported', field, message })
  }
  if (match === 'Exact' && version === 0) {
    throw invalidListOptions(forbiddenValue(field, `${field} "Exact" is forbidden for resourceVersion "0"`))
  }
}

/** Which revision a list is of, and where in it the page starts. */
function startOf(store: Store, query: URLSearchParams, limit: number): { revision: number; after: string } {
  const token = query.get('continue')
  if (token) {
    const { rv, start } = decodeToken(token)
    if (rv < store.compactedRevision) throw expired(tooOld)
    return { revision: rv, after: start }
  }
  const version = versionOf(query.get('resourceVersion'))
  const match = query.get('resourceVersionMatch')
  checkMatch(version, match)
  if (version !== undefined && version > store.revision) throw tooLargeResourceVersion(version, store.revision)
  const exact = match === 'Exact' || (!match && limit > 0 && version !== undefined && version > 0)
  if (!exact || version === undefined) return { revision: store.revision, after: '' }
  if (version < store.compactedRevision) {
    throw expired('The resourceVersion for the provided list is too old.')
  }
  return { revision: version, after: '' }
}

function limitOf(text: string | null): number {
  if (text === null || text === '') return 0
  if (/^-?\d+$/.test(text)) return Number(text)
  throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`)
}

/** One page of a list. Pages of one list show the same revision, whatever is written in between. */
export function listPage(store: Store, route: Route, query: URLSearchParams, selection: Selection): Page {
  // As the API server's watch cache: a list at "any version" (0) is not cut into pages.
  const limit = query.get('resourceVersion') === '0' ? 0 : limitOf(query.get('limit'))
  const { revision, after } = startOf(store, query, limit)
  const all = store.listAt(resourceOf(route.kind), revision) ?? []
  const matching = all.filter((stored) => stored.key > after && selection.filter(stored))
  const meta: ListMeta = { resourceVersion: String(revision) }
  if (limit <= 0 || matching.length <= limit) return { items: matching, meta }
  const items = matching.slice(0, limit)
  meta.continue = encodeToken({ rv: revision, start: items.at(-1)?.key ?? '' })
  if (!selection.selective) meta.remainingItemCount = matching.length - limit
  return { items, meta }
}
