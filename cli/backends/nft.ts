import { KpngError, messageOf } from '@kpng/api'
import type { NftOptions } from '@kpng/backend-nft'
import type { Backend } from '@kpng/client'
import { booleanFlag, type Context, type Flags, textFlag } from '../context.js'
import { booleanOption } from '../help.js'
import type { BackendCommand } from './backend.js'

export const nftCommand: BackendCommand = {
  name: 'to-nft',
  summary: 'program nftables (needs root or CAP_NET_ADMIN)',
  examples: ['--cluster-cidr 10.244.0.0/16', '--node-name node-1 --dry-run'],
  agent: { mode: 'nftables', flags: 'kernel' },
  addFlags: (command) =>
    command
      .addOption(booleanOption('--external-ips', 'serve spec.externalIPs', true))
      .addOption(
        booleanOption(
          '--protect-node-and-pod-ips',
          'do not serve external and load-balancer IPs that are addresses of this node or of a pod',
          false,
        ),
      )
      .addOption(booleanOption('--service-counters', 'count new connections per Service port, for the metrics', false))
      .option('--table <name>', 'name of the nftables tables (default: kpng, or kpng-<service-proxy-name>)')
      .option('--dry-run', 'print the ruleset and exit; change nothing'),
  create: async (flags, context) => {
    const { nftBackend, renderRuleset } = await import('@kpng/backend-nft')
    const options = await optionsFrom(flags, context)
    return flags.dryRun ? printing((view) => renderRuleset(view, options), context) : nftBackend(options)
  },
}

async function optionsFrom(flags: Flags, { log, resolved }: Context): Promise<NftOptions> {
  const { backendOfMode, kernelBackendOptions } = await import('@kpng/node')
  const settings = (resolved as NonNullable<typeof resolved>).settings
  // A file for a mode without a backend is refused: another data plane is not what it asks for.
  if (textFlag(flags, 'config') !== undefined) backendOfMode(settings.mode)
  const { options, warnings } = kernelBackendOptions(settings)
  for (const warning of warnings) log.warn(warning)
  return {
    ...options,
    log,
    externalIps: booleanFlag(flags, 'externalIps', true),
    protectNodeAndPodIps: booleanFlag(flags, 'protectNodeAndPodIps', false),
    counters: booleanFlag(flags, 'serviceCounters', false),
    tableName: textFlag(flags, 'table') ?? defaultTable(textFlag(flags, 'serviceProxyName')),
  }
}

/** A specialised proxy runs beside the main one, with tables of its own. */
const defaultTable = (serviceProxyName: string | undefined): string =>
  serviceProxyName === undefined ? 'kpng' : `kpng-${serviceProxyName}`.replace(/[^a-zA-Z0-9._-]/g, '-')

/** Prints the rules for the first complete view. */
function printing(render: (view: Parameters<Backend['sync']>[0]) => string, context: Context): Backend {
  return {
    setup: async () => {},
    sync: async (view) => {
      if (!view.node) {
        context.log.warn(
          'There is no Node object of this name: these rules lack its addresses, its zone and its pod CIDRs. Give the name with --node-name',
          { node: view.nodeName },
        )
      }
      try {
        console.log(render(view))
        context.stop()
      } catch (error) {
        // A backend is tried again after a failure; a dry run is not.
        context.stop(error instanceof KpngError ? error : new KpngError('invalid', messageOf(error), { cause: error }))
      }
    },
    cleanup: async () => {},
    close: async () => {},
  }
}
