import type { NftOptions } from '@kpng/backend-nft'
import type { Command } from 'commander'
import { booleanFlag, type Context, type Flags, textFlag } from '../context.js'
import { booleanOption } from '../help.js'
import { addAddressFlags, addressOptions } from './address-flags.js'
import type { BackendCommand } from './backend.js'
import { leftoversBeside } from './leftovers.js'
import { printing } from './printing.js'

export const nftCommand: BackendCommand = {
  name: 'to-nft',
  summary: 'program nftables (needs root or CAP_NET_ADMIN)',
  examples: ['--cluster-cidr 10.244.0.0/16', '--node-name node-1 --dry-run'],
  agent: { mode: 'nftables', flags: 'kernel' },
  addFlags: (command) => addNftFlags(command).option('--dry-run', 'print the ruleset and exit; change nothing'),
  create: async (flags, context) => {
    const { nftBackend, renderRuleset } = await import('@kpng/backend-nft')
    const options = await nftOptionsFrom(flags, context)
    return flags.dryRun ? printing((view) => renderRuleset(view, options), context) : nftBackend(options)
  },
}

/** The flags of every backend that programs nftables. */
export const addNftFlags = (command: Command): Command =>
  addAddressFlags(command)
    .addOption(booleanOption('--service-counters', 'count new connections per Service port, for the metrics', false))
    .option('--table <name>', 'name of the nftables tables (default: kpng, or kpng-<service-proxy-name>)')

export async function nftOptionsFrom(
  flags: Flags,
  { log, resolved }: Context,
  mode: 'nftables' | 'ebpf' = 'nftables',
): Promise<NftOptions> {
  const { checkMode, kernelBackendOptions } = await import('@kpng/node')
  const settings = (resolved as NonNullable<typeof resolved>).settings
  if (textFlag(flags, 'config') !== undefined) checkMode(settings.mode, 'nftables')
  const { options, warnings } = kernelBackendOptions(settings, mode)
  for (const warning of warnings) log.warn(warning)
  const tableName = textFlag(flags, 'table') ?? defaultTable(textFlag(flags, 'serviceProxyName'))
  return {
    ...options,
    log,
    ...(await addressOptions(flags, resolved)),
    counters: booleanFlag(flags, 'serviceCounters', false),
    tableName,
    leftovers: tableName === mainTable ? leftoversBeside(mode === 'ebpf' ? 'ebpf' : 'nft', log) : [],
  }
}

const mainTable = 'kpng'

/** A specialised proxy runs beside the main one, with tables of its own. */
const defaultTable = (serviceProxyName: string | undefined): string =>
  serviceProxyName === undefined ? mainTable : `kpng-${serviceProxyName}`.replace(/[^a-zA-Z0-9._-]/g, '-')
