import type { Log } from '@kpng/api'
import type { Leftovers } from '@kpng/dataplane'

// What each backend of the main kpng leaves on a machine, for the one that comes after it. A specialised kpng, with a service proxy name
// or tables of its own, removes nothing of others: it runs beside them.

/** The ways of carrying traffic that outlive their process, or may be left by one that was killed. */
export type Kept = 'ebpf' | 'nft' | 'iptables' | 'ipvs' | 'userspacelin' | 'userspacelin-iptables'

/** As `DataPlane.lockName` of each. */
const nftLock = 'nft table kpng'

/**
 * What others may have left for `own` to remove, in the order in which it should go.
 * @param pins where kpng's eBPF programs are kept
 */
export function leftoversBeside(own: Kept, log: Log, pins = '/sys/fs/bpf'): Leftovers[] {
  const all: Record<Kept, Leftovers> = {
    ebpf: ebpfLeftovers(pins),
    nft: tableLeftovers('to-nft', 'kpng', nftLock),
    iptables: iptablesLeftovers(log),
    ipvs: ipvsLeftovers(log),
    userspacelin: tableLeftovers('to-userspacelin', 'kpng-userspace', 'nft table kpng-userspace'),
    'userspacelin-iptables': captureLeftovers(log),
  }
  // eBPF uses the tables of nftables.
  const shared = own === 'ebpf' ? 'nft' : own
  return Object.entries(all).flatMap(([name, leftovers]) => (name === own || name === shared ? [] : leftovers))
}

function ebpfLeftovers(bpffs: string): Leftovers {
  const main = { bpffs, pinName: 'kpng' }
  const ebpf = () => import('@kpng/backend-ebpf')
  return {
    of: 'to-ebpf',
    lockName: nftLock,
    find: async () => (await ebpf()).pinFolders(main),
    remove: async () => void (await (await ebpf()).removePins(main)),
  }
}

/** Tables of nftables that are all that a backend leaves. */
function tableLeftovers(of: string, table: string, lockName: string): Leftovers {
  const isIt = (name: string) => name === table
  const nftables = () => import('@kpng/linux/nftables')
  return {
    ...{ of, lockName },
    find: async () => (await (await nftables()).listTables(isIt)).map(({ family, name }) => `table ${family} ${name}`),
    remove: async () => void (await (await nftables()).removeTables(isIt)),
  }
}

function iptablesLeftovers(log: Log): Leftovers {
  const iptables = () => import('@kpng/backend-iptables')
  return {
    of: 'to-iptables',
    lockName: 'iptables chains KUBE-SERVICES',
    find: async () => {
      const { chainNames, mainName, programsWithChains } = await iptables()
      return (await programsWithChains(chainNames(mainName))).map((program) => `chains of ${program}`)
    },
    remove: async () => {
      // Before the rule that keeps other machines out of loopback addresses.
      await restored(log, (path) => path.endsWith('/route_localnet'))
      const { iptablesBackend, mainName } = await iptables()
      await iptablesBackend({ log, name: mainName }).cleanup()
    },
  }
}

function ipvsLeftovers(log: Log): Leftovers {
  const tables = tableLeftovers('to-ipvs', 'kpng-ipvs', 'IPVS of kube-ipvs0')
  return {
    ...tables,
    remove: async () => {
      const { ipvsBackend } = await import('@kpng/backend-ipvs')
      await ipvsBackend({ log, name: 'kpng' }).cleanup()
      await restored(log, (path) => /\/(?:ipv4\/vs|conf\/all\/arp_[a-z]+)(?:\/|$)/.test(path))
    },
  }
}

/** Those of a process that was killed. */
function captureLeftovers(log: Log): Leftovers {
  const name = 'kpng-userspace'
  const iptables = () => import('@kpng/backend-iptables')
  return {
    of: 'to-userspacelin --capture iptables',
    lockName: `iptables chains ${name}`,
    find: async () => (await iptables()).programsWithChains({ owner: 'KPNG-PORTALS-HOST' }),
    remove: async () => {
      const { iptablesCapture } = await import('@kpng/backend-userspace')
      await iptablesCapture({ log, table: name }).cleanup()
    },
  }
}

async function restored(log: Log, only: (path: string) => boolean): Promise<void> {
  const { restoreSysctls } = await import('@kpng/node')
  for (const sentence of await restoreSysctls({ log, only })) log.warn(sentence)
}
