import type { DetectLocal, NftOptions } from '@kpng/backend-nft'
import type { Backend } from '@kpng/client'
import { booleanFlag, type Context, type Flags, given, listFlag, textFlag } from '../context.js'
import type { BackendCommand } from './backend.js'

export const nftCommand: BackendCommand = {
  name: 'to-nft',
  summary: 'nftables: services are elements of a few maps, a change is a handful of them',
  addFlags: (command) =>
    command
      .option(
        '--nodeport-addresses <which>',
        'which addresses serve node ports: primary, or CIDRs with commas',
        'primary',
      )
      .option('--external-ips [bool]', 'serve spec.externalIPs', 'true')
      .option('--masquerade-all [bool]', 'masquerade everything that goes to a cluster IP', 'false')
      .option('--masquerade-bit <bit>', 'the bit of the packet mark that means "to be masqueraded"', '14')
      .option(
        '--detect-local-mode <mode>',
        'ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix',
        'ClusterCIDR',
      )
      .option('--cluster-cidr <cidrs>', 'with ClusterCIDR: the ranges of all pods')
      .option('--pod-bridge-interface <name>', 'with BridgeInterface: the bridge')
      .option('--pod-interface-name-prefix <prefix>', 'with InterfaceNamePrefix: the prefix')
      .option('--writer <how>', 'how elements reach the kernel: netlink, nft or auto', 'auto')
      .option('--dry-run', 'print the ruleset instead of making it, and end'),
  create: async (flags, context) => {
    const { nftBackend, renderRuleset } = await import('@kpng/backend-nft')
    const options = await optionsFrom(flags, context)
    return flags.dryRun ? printing((view) => renderRuleset(view, options), context) : nftBackend(options)
  },
}

async function optionsFrom(flags: Flags, { log }: Context): Promise<NftOptions> {
  const { wholeNumber } = await import('@kpng/client')
  const addresses = textFlag(flags, 'nodeportAddresses') ?? 'primary'
  return {
    log,
    nodePortAddresses: addresses === 'primary' ? 'primary' : listFlag(flags, 'nodeportAddresses'),
    externalIps: booleanFlag(flags, 'externalIps', true),
    masqueradeAll: booleanFlag(flags, 'masqueradeAll', false),
    masqueradeBit: wholeNumber('--masquerade-bit', textFlag(flags, 'masqueradeBit') ?? '14'),
    detectLocal: await detectLocal(flags),
    // An unknown word is refused by the backend, in a sentence that names those there are.
    ...given('writer', textFlag(flags, 'writer') as NftOptions['writer']),
  }
}

async function detectLocal(flags: Flags): Promise<DetectLocal> {
  const { KpngError } = await import('@kpng/api')
  const mode = textFlag(flags, 'detectLocalMode') ?? 'ClusterCIDR'
  const needed = (flag: string, name: string): string => {
    const value = textFlag(flags, name)
    if (value === undefined) throw new KpngError('usage', `--detect-local-mode ${mode} needs ${flag}.`)
    return value
  }
  switch (mode) {
    case 'ClusterCIDR':
      return { mode, cidrs: listFlag(flags, 'clusterCidr') }
    case 'NodeCIDR':
      return { mode }
    case 'BridgeInterface':
      return { mode, name: needed('--pod-bridge-interface', 'podBridgeInterface') }
    case 'InterfaceNamePrefix':
      return { mode, prefix: needed('--pod-interface-name-prefix', 'podInterfaceNamePrefix') }
    default:
      throw new KpngError(
        'usage',
        `--detect-local-mode is ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix, not "${mode}".`,
      )
  }
}

/** Prints what would be made of the first complete view. */
function printing(render: (view: Parameters<Backend['sync']>[0]) => string, context: Context): Backend {
  return {
    setup: async () => {},
    sync: async (view) => {
      console.log(render(view))
      context.stop()
    },
    cleanup: async () => {},
  }
}
