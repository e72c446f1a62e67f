import type { Changes, NodeView, ServiceEndpoints } from '@kpng/client'
import { comment, ruleOf } from './rule.js'

/** Rules that let the load balancer reach the node's health checks, also where the chain INPUT is closed. */
export class HealthChecks {
  /** By Service. */
  readonly #rules = new Map<string, string>()

  /** The rules for a view, in the order of the Services' names. */
  rulesFor(view: NodeView, changes?: Changes): readonly string[] {
    const isFull = !changes || changes.full
    if (isFull) this.#rules.clear()
    for (const path of isFull ? view.services.keys() : changes.services.keys()) {
      const rule = ruleFor(path, view.services.get(path))
      if (rule === undefined) this.#rules.delete(path)
      else this.#rules.set(path, rule)
    }
    return [...this.#rules].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, rule]) => rule)
  }
}

function ruleFor(path: string, item: ServiceEndpoints | undefined): string | undefined {
  const { healthCheckNodePort: port = 0, externalTrafficToLocal } = item?.service ?? {}
  if (port <= 0 || port > 65_535 || !externalTrafficToLocal) return undefined
  return ruleOf('-p tcp', comment(`${path} health check node port`), `-m tcp --dport ${port}`, '-j ACCEPT')
}
