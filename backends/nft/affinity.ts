import type { Frontend, FrontendChange, FrontendEndpoint, FrontendTable } from '@kpng/dataplane'
import { addressBytesIn, type ElementMap, type TableFamily, tableFamily } from '@kpng/linux/nftables'
import { type ElementState, serves } from './elements/element-state.js'
import { endpointData, frontendKey, isLocalPolicy } from './elements/frontend-elements.js'

/** A frontend's key and one of its endpoints, in one family. */
const pair = (family: TableFamily, key: string, endpoint: string): string => `${family} ${key}${endpoint}`

/**
 * Knows which frontends have session affinity, so that a client can be released when its endpoint is gone. The kernel writes the
 * affinity map itself, so its content must be read from the kernel.
 */
export class Affinity {
  /** By family and key. */
  readonly #keys = new Set<string>()
  /**
   * Endpoints that clients from outside may no longer use since `takeLost`, although other clients may: the policy became Local, or
   * the endpoint moved to another node. The map does not say where a client is, so all clients of such an endpoint choose again.
   */
  #lost = new Set<string>()

  /** Starts over from what is served now. */
  reset(table: FrontendTable): void {
    this.#keys.clear()
    this.#lost.clear()
    for (const frontend of table.all()) if (hasAffinity(frontend)) this.#keys.add(idOf(frontend))
  }

  /** Records a change. Returns the families in which clients may now have an endpoint that they may no longer use. */
  note(changes: readonly FrontendChange[]): TableFamily[] {
    const touched = new Set<TableFamily>()
    for (const { before, after } of changes) {
      if (before && hasAffinity(before)) {
        this.#keys.delete(idOf(before))
        if (this.#losesEndpoints(before, after)) touched.add(tableFamily[before.family])
      }
      if (after && hasAffinity(after)) this.#keys.add(idOf(after))
    }
    return [...touched]
  }

  #losesEndpoints(before: Frontend, after: Frontend | undefined): boolean {
    if (!after || !hasAffinity(after)) return true
    const family = tableFamily[after.family]
    const key = frontendKey(after)
    const forOutside = new Set(after.outside.endpoints.map(endpointData))
    const forInside = new Set(after.inside.endpoints.map(endpointData))
    let loses = false
    for (const endpoint of endpointsOf(before)) {
      const data = endpointData(endpoint)
      if (forOutside.has(data)) continue
      const hadOutside = before.outside.endpoints.some((other) => endpointData(other) === data)
      if (forInside.has(data) && !hadOutside) continue
      loses = true
      if (forInside.has(data)) this.#lost.add(pair(family, key, data))
    }
    return loses
  }

  /** The endpoints that clients from outside lost, for `stale`. Each is returned once; its clients are searched for later. */
  takeLost(): ReadonlySet<string> {
    const lost = this.#lost
    this.#lost = new Set()
    return lost
  }

  get isUsed(): boolean {
    return this.#keys.size > 0
  }

  /** What must be removed from an affinity map: clients of endpoints that do not serve them. */
  stale(family: TableFamily, remembered: ElementMap, state: ElementState, lost: ReadonlySet<string>): ElementMap {
    const stale: ElementMap = new Map()
    const addressLength = addressBytesIn[family]
    const mayStay = (key: string, endpoint: string) =>
      this.#keys.has(`${family} ${key}`) &&
      !lost.has(pair(family, key, endpoint)) &&
      serves(state, family, key, endpoint)
    for (const [client, endpoint] of remembered) {
      const service = client.slice(addressLength)
      const nodePort = client.slice(2 * addressLength)
      if (!mayStay(service, endpoint) && !mayStay(nodePort, endpoint)) stale.set(client, endpoint)
    }
    return stale
  }
}

const hasAffinity = ({ sessionAffinitySeconds }: Frontend): boolean => sessionAffinitySeconds !== undefined

const idOf = (frontend: Frontend): string => `${tableFamily[frontend.family]} ${frontendKey(frontend)}`

const endpointsOf = (frontend: Frontend): readonly FrontendEndpoint[] =>
  isLocalPolicy(frontend) ? [...frontend.inside.endpoints, ...frontend.outside.endpoints] : frontend.inside.endpoints
