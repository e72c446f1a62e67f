import type { NftOptions } from '@kpng/backend-nft'
import type { Backend } from '@kpng/client'
import { booleanFlag, type Context, type Flags, textFlag } from '../context.js'
import type { BackendCommand } from './backend.js'

export const nftCommand: BackendCommand = {
  name: 'to-nft',
  summary: 'nftables: services are elements of a few maps, a change is a handful of them',
  agent: { mode: 'nftables', flags: 'kernel' },
  addFlags: (command) =>
    command
      .option('--external-ips [bool]', 'serve spec.externalIPs', 'true')
      .option(
        '--protect-node-and-pod-ips [bool]',
        'do not serve external and load-balancer IPs that are addresses of this node or of a pod',
        'false',
      )
      .option('--service-counters [bool]', 'count new connections by service port, for the metrics', 'false')
      .option('--table <name>', "name of kpng's nftables tables; default: kpng, or kpng-<service-proxy-name>")
      .option('--dry-run', 'print the ruleset instead of making it, and end'),
  create: async (flags, context) => {
    const { nftBackend, renderRuleset } = await import('@kpng/backend-nft')
    const options = await optionsFrom(flags, context)
    return flags.dryRun ? printing((view) => renderRuleset(view, options), context) : nftBackend(options)
  },
}

async function optionsFrom(flags: Flags, { log, resolved }: Context): Promise<NftOptions> {
  const { backendOfMode, kernelBackendOptions } = await import('@kpng/node')
  const settings = (resolved as NonNullable<typeof resolved>).settings
  // A file for a mode that has no backend here is refused, rather than served by another one than it asks for.
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

/** A specialised proxier runs beside the main one, with tables of its own. */
const defaultTable = (serviceProxyName: string | undefined): string =>
  serviceProxyName === undefined ? 'kpng' : `kpng-${serviceProxyName}`.replace(/[^a-zA-Z0-9._-]/g, '-')

/** Prints what would be made of the first complete view. */
function printing(render: (view: Parameters<Backend['sync']>[0]) => string, context: Context): Backend {
  return {
    setup: async () => {},
    sync: async (view) => {
      console.log(render(view))
      context.stop()
    },
    cleanup: async () => {},
    close: async () => {},
  }
}
