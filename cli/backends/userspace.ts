import { Option } from 'commander'
import { type Context, type Flags, given, listFlag, textFlag } from '../context.js'
import { addAddressFlags, addressOptions } from './address-flags.js'
import type { BackendCommand } from './backend.js'
import { leftoversBeside } from './leftovers.js'

type Capture = 'nft' | 'iptables' | 'none'

/** The flags that both userspace proxiers have, as in Go kpng. */
const addFlags: BackendCommand['addFlags'] = (command) =>
  addAddressFlags(command)
    .option(
      '--sync-period-duration <duration>',
      'how often to check the portals and remove stale sessions (default: --sync-period)',
    )
    .option('--udp-idle-timeout <duration>', 'how long an idle UDP client keeps its endpoint', '10s')
    .option(
      '--drain-seconds <seconds>',
      'how long connections to a removed endpoint may continue (default: until they end)',
    )
    .option('--cluster-cidr <cidrs>', 'ranges of the pods in the cluster, with commas (default: none)')

/** The options that those flags stand for. */
async function optionsFrom(flags: Flags, { resolved }: Context) {
  const { milliseconds, wholeNumber } = await import('@kpng/client')
  const drain = textFlag(flags, 'drainSeconds')
  const period = textFlag(flags, 'syncPeriodDuration')
  const { settingsFromFlags } = await import('@kpng/node')
  const fromFlag = settingsFromFlags({ clusterCidrs: textFlag(flags, 'clusterCidr') }).clusterCidrs
  const { syncPeriodMs, clusterCidrs, nodePortAddresses } = (resolved as NonNullable<typeof resolved>).settings
  return {
    syncPeriodMs: period === undefined ? syncPeriodMs : milliseconds('--sync-period-duration', period),
    udpIdleTimeoutMs: milliseconds('--udp-idle-timeout', textFlag(flags, 'udpIdleTimeout') ?? '10s'),
    ...given('drainSeconds', drain === undefined ? undefined : wholeNumber('--drain-seconds', drain)),
    detectLocal: { mode: 'ClusterCIDR' as const, cidrs: fromFlag ?? clusterCidrs },
    nodePortAddresses,
    ...(await addressOptions(flags, resolved)),
  }
}

export const userspaceLinuxCommand: BackendCommand = {
  name: 'to-userspacelin',
  agent: { mode: 'userspace', flags: 'health' },
  summary: 'proxy in this process; nftables or iptables redirect the Service addresses to it',
  examples: ['--capture nft', '--capture none'],
  addFlags: (command) =>
    addFlags(
      command
        .addOption(
          new Option('--capture <how>', 'nft, iptables, or none: listen on the addresses of the Services')
            .choices(['nft', 'iptables', 'none'])
            .default('nft'),
        )
        .option(
          '--table <name>',
          'name of the nftables tables, or what iptables chains are named after (default: kpng-userspace, or kpng-userspace-<service-proxy-name>)',
        )
        .addOption(
          new Option(
            '--mover <how>',
            'how TCP is forwarded: splice, in threads by the kernel, or portable (default: splice where it works)',
          ).choices(['splice', 'portable']),
        )
        .option('--bind-address <addresses>', 'where to open proxy ports (default: every address)')
        .option('--port-range <range>', 'proxy ports, such as 30000-30999 (default: any free port)'),
    ),
  create: async (flags, context) => {
    const { log } = context
    const { iptablesCapture, nftCapture, noCapture, parsePortRange, userspaceBackend } = await import(
      '@kpng/backend-userspace'
    )
    const how = flags.capture as Capture
    const range = textFlag(flags, 'portRange')
    const portals = {
      log,
      table: textFlag(flags, 'table') ?? defaultTable(textFlag(flags, 'serviceProxyName')),
      bindAddresses: listFlag(flags, 'bindAddress'),
      ...given('portRange', range === undefined ? undefined : parsePortRange(range)),
    }
    const own = how === 'iptables' ? 'userspacelin-iptables' : 'userspacelin'
    const captures: Record<Capture, () => ReturnType<typeof noCapture>> = {
      nft: () => nftCapture(portals),
      iptables: () => iptablesCapture(portals),
      none: () => noCapture(),
    }
    return userspaceBackend({
      ...(await optionsFrom(flags, context)),
      ...given('mover', flags.mover as 'splice' | 'portable' | undefined),
      log,
      capture: captures[how](),
      leftovers: portals.table === defaultTable(undefined) ? leftoversBeside(own, log) : [],
    })
  },
}

/** A specialised proxier runs beside the main one, with tables of its own. */
const defaultTable = (serviceProxyName: string | undefined): string =>
  ['kpng-userspace', ...(serviceProxyName === undefined ? [] : [serviceProxyName])]
    .join('-')
    .replace(/[^a-zA-Z0-9._-]/g, '-')

export const userspaceWindowsCommand: BackendCommand = {
  name: 'to-winuserspace',
  agent: { mode: 'winuserspace', flags: 'health' },
  summary: 'proxy in this process, with the Service addresses on a Windows interface',
  examples: ['', '--drain-seconds 30'],
  addFlags: (command) =>
    addFlags(
      command
        .option('--forwarder-interface <name>', 'the interface (default: vEthernet (HNS Internal NIC))')
        .option(
          '--state-file <path>',
          'remembers the added addresses after a crash (default: kpng\\addresses.json in %ProgramData%)',
        ),
    ),
  create: async (flags, context) => {
    const { log } = context
    const { defaultStateFile, netshCapture, userspaceBackend } = await import('@kpng/backend-userspace')
    const capture = netshCapture({
      log,
      ...given('interfaceName', textFlag(flags, 'forwarderInterface')),
      stateFile: textFlag(flags, 'stateFile') ?? defaultStateFile(),
    })
    return userspaceBackend({ ...(await optionsFrom(flags, context)), log, capture })
  },
}
