// A working data plane in under 100 lines: every Service address with a port, TCP and UDP, both families, by nftables. One chain
// per frontend draws an endpoint; a map leads from the address to the chain. A change rewrites the chains of what changed.
import {
  type BackendFeatures,
  changeSetsOverGrpc,
  KpngError,
  optionsFromArguments,
  runBackend,
  stopOnSignals,
} from '@kpng/client'
import { backendOf, type DataPlane, type Frontend, FrontendTable, type Wanted } from '@kpng/dataplane'
import { linuxHost, runProgram } from '@kpng/linux'

const tableOf = { IPv4: 'ip small-nft', IPv6: 'ip6 small-nft' } as const
const addressType = { IPv4: 'ipv4_addr', IPv6: 'ipv6_addr' } as const
const families = ['IPv4', 'IPv6'] as const

/** The text is one transaction: all of it, or nothing. */
async function nft(text: string): Promise<void> {
  const { code, errors } = await runProgram('nft', ['-f', '-'], { input: text, limitMs: 30_000 })
  if (code !== 0) throw new KpngError('refused', `nft refused the rules: ${errors}`)
}

const skeleton = families.map((family) => {
  const table = tableOf[family]
  const ip = table.split(' ')[0]
  const lookUp = `${ip} daddr . meta l4proto . th dport vmap @frontends`
  return `add table ${table}; delete table ${table}
table ${table} {
  map frontends { type ${addressType[family]} . inet_proto . inet_service : verdict; }
  chain prerouting { type nat hook prerouting priority -100; ${lookUp}; }
  chain output { type nat hook output priority -100; ${lookUp}; }
  chain postrouting { type nat hook postrouting priority 100; ct status dnat masquerade; }
}
`
})

const features: BackendFeatures = {
  ...{ name: 'small-nft', kinds: ['clusterIP', 'externalIP', 'loadBalancerIP'], protocols: ['tcp', 'udp'], families },
  ...{ sessionAffinity: false, sourceRanges: false, wholeAddresses: false, keepsSourceAddress: false },
  ...{ localhostNodePorts: false, counters: false, directServerReturn: false },
}

class SmallNft implements DataPlane<void, string> {
  readonly name = 'small-nft'
  readonly needs = { rights: ['CAP_NET_ADMIN'], programs: ['nft'] }
  readonly lockName = 'nft table small-nft'
  readonly families = families
  readonly features = (): BackendFeatures => features
  /** Chains need short names, so each frontend gets a number. */
  readonly #chains = new Map<string, string>()

  async open(): Promise<void> {}
  close(): void {}
  async read(): Promise<void> {} // A full sync writes everything anew, whatever is there.

  plan({ full, changed }: Wanted<void>): string {
    if (!full) return changed.frontends.map(({ before, after }) => this.#add(after) || this.#remove(before)).join('')
    this.#chains.clear()
    return skeleton.join('') + [...frontends.all()].map((frontend) => this.#add(frontend)).join('')
  }

  async write(text: string): Promise<undefined> {
    if (text !== '') await nft(text)
  }

  #add(frontend: Frontend | undefined): string {
    // Node ports and whole addresses are left as an exercise.
    if (!frontend || frontend.kind === 'nodePort' || frontend.protocol === 'any') return ''
    const { id, protocol, family, inside } = frontend
    const table = tableOf[family]
    const chain = this.#chains.get(id) ?? `frontend-${this.#chains.size}`
    this.#chains.set(id, chain)
    const slots = inside.endpoints.map(({ ip, port }, slot) => `${slot} : ${ip} . ${port}`)
    const draw = `meta l4proto ${protocol} dnat ${table.split(' ')[0]} to numgen random mod ${slots.length} map { ${slots.join(', ')} }`
    const rule = slots.length > 0 ? draw : inside.otherwise === 'drop' ? 'drop' : 'reject'
    return `add chain ${table} ${chain}\nflush chain ${table} ${chain}\nadd rule ${table} ${chain} ${rule}\nadd element ${table} frontends { ${keyOf(frontend)} : goto ${chain} }\n`
  }

  #remove(frontend: Frontend | undefined): string {
    const chain = frontend && this.#chains.get(frontend.id)
    if (!chain) return ''
    const table = tableOf[frontend.family]
    return `delete element ${table} frontends { ${keyOf(frontend)} }\nflush chain ${table} ${chain}\n`
  }

  async remove(): Promise<void> {
    await nft(families.map((family) => `add table ${tableOf[family]}; delete table ${tableOf[family]}\n`).join(''))
  }
}

const keyOf = ({ address, protocol, port }: Frontend): string => `${address} . ${protocol} . ${port}`

const options = optionsFromArguments()
const { log, nodeName } = options
// Source ranges are not enforced here, so addresses that have some are not served.
const frontends = new FrontendTable({ sourceRanges: false }, log)
const backend = backendOf(new SmallNft(), { frontends, host: linuxHost, log })
await runBackend(backend, { changeSets: changeSetsOverGrpc(options), nodeName, log, signal: stopOnSignals(log) })
