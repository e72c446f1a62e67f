import { endpointPath } from '@kpng/api'
import { hashKey } from '../store/hash.js'
import { type EndpointRecord, none } from '../store/index.js'
import type { Candidate } from './candidates.js'

/** Up to so many are looked through: an index for each of thousands of small services would be most of their memory. */
export const few = 16

/** The paths of a service's endpoints: the same to every node, and a matter of what exists now, not of what was before. */
export class EndpointPaths {
  readonly #candidates: readonly Candidate[]
  /** In the order of the candidates; empty for those that no node uses. */
  readonly #paths: string[] = []
  readonly #numbers: Map<string, number> | undefined
  /** Whether an endpoint could not have the path that it would have alone. */
  #hasLongerPaths = false

  /** @param similar those of another revision: most are the same strings, which are found without looking at their letters */
  constructor(service: string, candidates: readonly Candidate[], similar: EndpointPaths | undefined) {
    this.#candidates = candidates
    this.#numbers = candidates.length > few ? new Map() : undefined
    const canTakeOver = similar !== undefined && !similar.#hasLongerPaths
    const find = inOrder(canTakeOver ? similar.#candidates : none)
    for (const [number, { endpoint, reason }] of candidates.entries()) {
      const own = (canTakeOver && similar.#paths[find(endpoint)]) || ownPath(service, endpoint)
      const path = reason ? '' : this.#unique(own, endpoint)
      this.#paths.push(path)
      if (path !== '') this.#numbers?.set(path, number)
    }
  }

  of(candidate: number): string {
    return this.#paths[candidate] as string
  }

  /** The number of the candidate that has a path. */
  numberOf(path: string): number | undefined {
    if (this.#numbers) return this.#numbers.get(path)
    const number = this.#paths.indexOf(path)
    return number < 0 ? undefined : number
  }

  #unique(path: string, endpoint: EndpointRecord): string {
    if (this.numberOf(path) === undefined) return path
    this.#hasLongerPaths = true
    const longer = `${path}:${hashKey(identityOf(endpoint))}`
    for (let count = 2; ; count++) {
      const candidate = count === 2 ? longer : `${longer}:${count}`
      if (this.numberOf(candidate) === undefined) return candidate
    }
  }
}

/** Finds endpoints that are asked for in about the order of the list: the next one, or one went. Returns -1 for others. */
export function inOrder(list: readonly { readonly endpoint: EndpointRecord }[]): (endpoint: EndpointRecord) => number {
  let at = 0
  return (endpoint) => {
    const found = list[at]?.endpoint === endpoint ? at : at + 1
    if (list[found]?.endpoint !== endpoint) return -1
    at = found + 1
    return found
  }
}

/**
 * A pod's endpoint is named after it. A pod with two address families has two endpoints: the IPv6 one says so, whether there
 * is an IPv4 one or not, so that a path never depends on what else exists. Endpoints without a pod are named by a hash.
 */
function ownPath(service: string, endpoint: EndpointRecord): string {
  const { podName, v4, v6 } = endpoint
  if (podName === '') return endpointPath(service, hashKey(identityOf(endpoint)))
  return endpointPath(service, v4.length === 0 && v6.length > 0 ? `${podName}:v6` : podName)
}

/** What makes an endpoint without a name the same one after its conditions changed. */
const identityOf = ({ hostname, v4, v6, ports }: EndpointRecord): string =>
  [hostname, v4.join(), v6.join(), ...(ports ?? none).map(({ name, port }) => `${name}:${port}`)].join('|')
