import { toGoJson } from '@kpng/api'
import type { NodeView, ServiceEndpoints } from './backend.js'

/** The services of a view in the order of their names. */
export const servicesInOrder = (view: NodeView): ServiceEndpoints[] =>
  [...view.services].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, item]) => item)

/** A whole view as JSON lines, one per Service: what Go kpng's `kpng-json` printed. */
export const jsonLines = (view: NodeView): string =>
  servicesInOrder(view)
    .map((item) => `${toGoJson(item)}\n`)
    .join('')
