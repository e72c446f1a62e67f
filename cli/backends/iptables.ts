import type { IptablesOptions } from '@kpng/backend-iptables'
import { Option } from 'commander'
import { type Context, type Flags, textFlag } from '../context.js'
import { addAddressFlags, addressOptions } from './address-flags.js'
import type { BackendCommand } from './backend.js'
import { leftoversBeside } from './leftovers.js'
import { printing } from './printing.js'

export const iptablesCommand: BackendCommand = {
  name: 'to-iptables',
  summary: "program iptables, in kube-proxy's chains (needs root or CAP_NET_ADMIN)",
  examples: ['--cluster-cidr 10.244.0.0/16', '--node-name node-1 --dry-run'],
  agent: { mode: 'iptables', flags: 'kernel' },
  addFlags: (command) =>
    addAddressFlags(command)
      .addOption(
        new Option('--iptables-flavour <flavour>', 'nft, legacy, or auto: the one that the rest of the node uses')
          .choices(['auto', 'nft', 'legacy'])
          .default('auto'),
      )
      .option('--dry-run', 'print the input of iptables-restore and exit; change nothing'),
  create: async (flags, context) => {
    const { iptablesBackend, renderRules } = await import('@kpng/backend-iptables')
    const options = await optionsFrom(flags, context)
    return flags.dryRun ? printing((view) => renderRules(view, options), context) : iptablesBackend(options)
  },
}

async function optionsFrom(flags: Flags, { log, resolved }: Context): Promise<IptablesOptions> {
  const { checkMode, kernelBackendOptions, rememberChanges } = await import('@kpng/node')
  const { settings, origins } = resolved as NonNullable<typeof resolved>
  if (textFlag(flags, 'config') !== undefined) checkMode(settings.mode, 'iptables')
  // As in kube-proxy's iptables mode, every address serves node ports unless somebody chose some.
  const nodePortAddresses = origins.nodePortAddresses === 'default' ? ['all'] : settings.nodePortAddresses
  const { options, warnings } = kernelBackendOptions({ ...settings, nodePortAddresses }, 'iptables')
  for (const warning of warnings) log.warn(warning)
  const serviceProxyName = textFlag(flags, 'serviceProxyName')
  return {
    ...options,
    log,
    name: serviceProxyName ?? 'kpng',
    leftovers: serviceProxyName === undefined ? leftoversBeside('iptables', log) : [],
    flavour: flags.iptablesFlavour as NonNullable<IptablesOptions['flavour']>,
    localhostNodePorts: settings.localhostNodePorts,
    ...(await addressOptions(flags, resolved)),
    onSysctlChanged: (path, before, value) => void rememberChanges({ [path]: { before, value } }, { log }),
  }
}
