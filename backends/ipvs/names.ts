import { createHash } from 'node:crypto'
import type { Family } from '@kpng/api'

// What this backend calls its things in the kernel, and the packet marks that it uses.

/** The name of the main kpng. A specialised one has the name of its proxier. */
export const mainName = 'kpng'

export interface Names {
  /** The dummy interface that holds the addresses of Services. The main kpng's is called as in kube-proxy. */
  readonly interfaceName: string
  /** The nftables tables, one per family. */
  readonly tableName: string
}

/** Interface names have at most 15 characters. */
const maxInterfaceName = 15

/** @param name `kpng`, or the name of a specialised proxier */
export function namesOf(name: string): Names {
  if (name === mainName) return { interfaceName: 'kube-ipvs0', tableName: 'kpng-ipvs' }
  const plain = name.replace(/[^a-zA-Z0-9._-]/g, '-')
  const wanted = `kpng-${plain}`
  const hash = createHash('sha256').update(name).digest('hex').slice(0, 6)
  return {
    interfaceName: wanted.length <= maxInterfaceName ? wanted : `kpng-${hash}`,
    tableName: `kpng-ipvs-${plain}`,
  }
}

/** Whether a table belongs to some kpng. */
export const isOwnTable = (name: string): boolean => /^kpng-ipvs(?:-|$)/.test(name)

export const tableFamily: Readonly<Record<Family, 'ip' | 'ip6'>> = { IPv4: 'ip', IPv6: 'ip6' }

// Virtual servers that cannot be told by address and port are found by the packet's mark. IPVS compares all its bits. Ours begin with
// this byte. Bits 14 and 15 stay free: kube-proxy and the kubelet give them a meaning.

export const markPrefix = 0x4b000000
export const markPrefixMask = 0xff000000

/** This bit of such a mark says that the packet is to be masqueraded. */
export const markMasquerade = 0x00800000

const lowBits = 14
const highBits = 7
const markCount = 2 ** (lowBits + highBits)

const markAt = (number: number): number =>
  (markPrefix | ((number >> lowBits) << 16) | (number & (2 ** lowBits - 1))) >>> 0

/** Gives each name its mark. The same name has the same mark after a restart, unless two names have the same hash. */
export class Marks {
  readonly #marks = new Map<string, number>()
  readonly #taken = new Set<number>()

  of(name: string): number {
    const known = this.#marks.get(name)
    if (known !== undefined) return known
    let number = createHash('sha256').update(name).digest().readUInt32BE(0) % markCount
    while (this.#taken.has(markAt(number))) number = (number + 1) % markCount
    const mark = markAt(number)
    this.#marks.set(name, mark)
    this.#taken.add(mark)
    return mark
  }

  release(name: string): void {
    const mark = this.#marks.get(name)
    if (mark === undefined) return
    this.#marks.delete(name)
    this.#taken.delete(mark)
  }
}
