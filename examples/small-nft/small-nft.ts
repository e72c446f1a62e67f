// A working data plane in under 100 lines: every Service address with a port, TCP and UDP, both families, by nftables. One chain
// per frontend draws an endpoint; a map leads from the address to the chain. A change rewrites the chains of what changed.
import {
  type Backend,
  type Changes,
  changeSetsOverGrpc,
  KpngError,
  type NodeView,
  optionsFromArguments,
  runBackend,
  stopOnSignals,
} from '@kpng/client'
import { type Frontend, FrontendTable, frontendId } from '@kpng/dataplane'
import { reachableAddresses, runProgram } from '@kpng/linux'

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

class SmallNft implements Backend {
  readonly #frontends = new FrontendTable()
  /** Chains need short names, so each frontend gets a number. */
  readonly #chains = new Map<string, string>()

  async setup(): Promise<void> {
    await nft('')
  }

  async sync(view: NodeView, changes: Changes): Promise<void> {
    const machine = { families, addresses: reachableAddresses() }
    const { full, frontends } = this.#frontends.apply(view, changes, machine)
    if (full) {
      this.#chains.clear()
      await nft(skeleton.join('') + [...this.#frontends.all()].map((frontend) => this.#add(frontend)).join(''))
    } else {
      const lines = frontends.map(({ before, after }) =>
        after ? this.#add(after) : before ? this.#remove(before) : '',
      )
      if (lines.length > 0) await nft(lines.join(''))
    }
  }

  #add(frontend: Frontend): string {
    const { kind, protocol, family, inside } = frontend
    // Node ports and whole addresses are left as an exercise.
    if (kind === 'nodePort' || protocol === 'any') return ''
    const table = tableOf[family]
    const chain = this.#chains.get(frontendId(frontend)) ?? `frontend-${this.#chains.size}`
    this.#chains.set(frontendId(frontend), chain)
    const slots = inside.endpoints.map(({ ip, port }, slot) => `${slot} : ${ip} . ${port}`)
    const ip = table.split(' ')[0]
    const draw = `meta l4proto ${protocol} dnat ${ip} to numgen random mod ${slots.length} map { ${slots.join(', ')} }`
    const rule = slots.length > 0 ? draw : inside.otherwise === 'drop' ? 'drop' : 'reject'
    const element = `${keyOf(frontend)} : goto ${chain}`
    return `add chain ${table} ${chain}\nflush chain ${table} ${chain}\nadd rule ${table} ${chain} ${rule}\nadd element ${table} frontends { ${element} }\n`
  }

  #remove(frontend: Frontend): string {
    const chain = this.#chains.get(frontendId(frontend))
    const table = tableOf[frontend.family]
    return chain ? `delete element ${table} frontends { ${keyOf(frontend)} }\nflush chain ${table} ${chain}\n` : ''
  }

  async cleanup(): Promise<void> {
    await nft(families.map((family) => `add table ${tableOf[family]}; delete table ${tableOf[family]}\n`).join(''))
  }

  async close(): Promise<void> {}
}

const keyOf = ({ address, protocol, port }: Frontend): string => `${address} . ${protocol} . ${port}`

const options = optionsFromArguments()
const { log, nodeName } = options
await runBackend(new SmallNft(), { changeSets: changeSetsOverGrpc(options), nodeName, log, signal: stopOnSignals(log) })
