import { createHash } from 'node:crypto'

// Every chain of this backend. The main kpng's are called as in kube-proxy, so that operators find what they know. iptables takes
// names of 28 characters at most.

/** The chains of one service port. */
export type PortChainKind =
  /** Draws one of all endpoints. */
  | 'SVC'
  /** Draws one of the endpoints that a Local policy allows. */
  | 'SVL'
  /** What came to an address other than the cluster IP: decides about masquerading and about policies. */
  | 'EXT'
  /** Lets allowed sources pass to EXT. */
  | 'FW'
  /** One endpoint. */
  | 'SEP'

/** The chains of one kpng. */
export interface ChainNames {
  /** Says that the chains belong to kpng, not to kube-proxy. */
  readonly owner: string
  readonly services: string
  readonly nodePorts: string
  readonly externalServices: string
  readonly firewall: string
  readonly forward: string
  readonly postrouting: string
  readonly markMasquerade: string
  /** Marks clients that are not pods, if the pods have several ranges. */
  readonly markOutside: string
  /** @param text what the name's hash is made of */
  port(kind: PortChainKind, text: string): string
  /** Whether a chain is one of a service port. */
  isPortChain(chain: string): boolean
}

/** The name of the main kpng. A specialised one has the name of its proxier. */
export const mainName = 'kpng'

const ownerPrefix = 'KPNG-OWNER-'

/** With a longer one, KPNG-…-EXTERNAL-SERVICES would not fit. */
const maxShortName = 5

const names = (owner: string, prefix: string, hashLength: number): ChainNames => {
  const portChain = new RegExp(`^${prefix}(?:SVC|SVL|EXT|FW|SEP)-[A-Z2-7]{${hashLength}}$`)
  return {
    owner,
    services: `${prefix}SERVICES`,
    nodePorts: `${prefix}NODEPORTS`,
    externalServices: `${prefix}EXTERNAL-SERVICES`,
    firewall: `${prefix}PROXY-FIREWALL`,
    forward: `${prefix}FORWARD`,
    postrouting: `${prefix}POSTROUTING`,
    markMasquerade: `${prefix}MARK-MASQ`,
    markOutside: `${prefix}MARK-OUTSIDE`,
    port: (kind, text) => `${prefix}${kind}-${hash(text, hashLength)}`,
    isPortChain: (chain) => portChain.test(chain),
  }
}

const main = names(`${ownerPrefix}${mainName}`, 'KUBE-', 16)

/** @param name `kpng`, or the name of a specialised proxier */
export const chainNames = (name: string): ChainNames => (name === mainName ? main : namesWith(shortName(name)))

const namesWith = (short: string): ChainNames => names(`${ownerPrefix}${short}`, `KPNG-${short}-`, 13)

/** The chains of the kpng that an ownership chain belongs to; undefined if the chain is none. */
export function namesOfOwner(chain: string): ChainNames | undefined {
  if (!chain.startsWith(ownerPrefix)) return undefined
  return chain === main.owner ? main : namesWith(chain.slice(ownerPrefix.length))
}

/** Every chain that does not belong to a service port. */
export const fixedChains = (own: ChainNames): string[] => [
  ...[own.owner, own.services, own.nodePorts, own.externalServices, own.firewall, own.forward],
  ...[own.postrouting, own.markMasquerade, own.markOutside],
]

/** A short name stays as it is, in capitals; of others two letters and a hash are left. */
function shortName(name: string): string {
  const capitals = name.toUpperCase()
  // KPNG-OWNER-… has a meaning of its own.
  if (capitals.length <= maxShortName && /^[A-Z0-9]+$/.test(capitals) && capitals !== 'OWNER') return capitals
  return `${capitals.replace(/[^A-Z0-9]/g, '').slice(0, 2)}${hash(name, 3)}`
}

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** The first characters of the SHA-256 in base32, as in kube-proxy. */
function hash(text: string, length: number): string {
  const digest = createHash('sha256').update(text).digest()
  let encoded = ''
  for (let index = 0; index < length; index++) {
    const bit = index * 5
    const bits = digest.readUInt16BE(bit >> 3)
    encoded += letters[(bits >> (11 - (bit & 7))) & 31]
  }
  return encoded
}
