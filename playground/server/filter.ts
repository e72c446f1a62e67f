import { matchesLabels } from '@kpng/api'
import type { Kind } from '../kinds/kind.js'
import { matchesFields, parseFieldSelector } from '../selectors/fields.js'
import { parseLabelSelector } from '../selectors/labels.js'
import type { Stored } from '../storage/store.js'
import type { Route } from './route.js'

/** Whether an object is part of a list or watch. */
export type Filter = (stored: Stored) => boolean

export interface Selection {
  filter: Filter
  /** True when selectors decide too: then the number of remaining items is not known. */
  selective: boolean
}

export function selectionOf(route: Route, query: URLSearchParams): Selection {
  const kind: Kind = route.kind
  const labels = parseLabelSelector(query.get('labelSelector') ?? '')
  const fields = parseFieldSelector(query.get('fieldSelector') ?? '', kind.fields)
  const prefix = route.namespace === undefined ? '' : `${route.namespace}/`
  const { name } = route
  const filter: Filter = ({ key, object }) =>
    key.startsWith(prefix) &&
    (name === undefined || object.metadata.name === name) &&
    (labels.length === 0 || matchesLabels(labels, object.metadata.labels)) &&
    (fields.length === 0 || matchesFields(fields, kind.fields, object))
  return { filter, selective: labels.length + fields.length > 0 }
}
