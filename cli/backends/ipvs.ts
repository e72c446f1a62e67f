import { KpngError } from '@kpng/api'
import type { IpvsOptions } from '@kpng/backend-ipvs'
import { type Context, type Flags, textFlag } from '../context.js'
import { addAddressFlags, addressOptions } from './address-flags.js'
import type { BackendCommand } from './backend.js'
import { printing } from './printing.js'

export const ipvsCommand: BackendCommand = {
  name: 'to-ipvs',
  summary: 'program IPVS, with kube-ipvs0 as in kube-proxy (needs root or CAP_NET_ADMIN)',
  examples: ['--cluster-cidr 10.244.0.0/16', '--ipvs-scheduler lc'],
  agent: { mode: 'ipvs', flags: 'kernel' },
  addFlags: (command) =>
    addAddressFlags(command)
      .option(
        '--drain-limit <duration>',
        'how long connections to a removed endpoint may continue; it is removed as soon as it has none',
        '15m',
      )
      .option('--dry-run', 'print virtual servers and rules and exit; change nothing'),
  create: async (flags, context) => {
    const { ipvsBackend, renderState } = await import('@kpng/backend-ipvs')
    const options = await optionsFrom(flags, context)
    return flags.dryRun ? printing((view) => renderState(view, options), context) : ipvsBackend(options)
  },
}

async function optionsFrom(flags: Flags, { log, resolved }: Context): Promise<IpvsOptions> {
  const { milliseconds } = await import('@kpng/client')
  const { checkMode, isOn, kernelBackendOptions, rememberChanges } = await import('@kpng/node')
  const { settings, origins } = resolved as NonNullable<typeof resolved>
  if (textFlag(flags, 'config') !== undefined) checkMode(settings.mode, 'ipvs')
  if (!isOn(settings.featureGates, 'KubeProxyIPVS')) {
    throw new KpngError(
      'unsupported',
      'The feature gate KubeProxyIPVS is off, so IPVS must not be used. Use to-nft, or set the gate to true.',
    )
  }
  // As in kube-proxy's ipvs mode, every address serves node ports unless somebody chose some.
  const nodePortAddresses = origins.nodePortAddresses === 'default' ? ['all'] : settings.nodePortAddresses
  const { options, warnings } = kernelBackendOptions({ ...settings, nodePortAddresses }, 'ipvs')
  for (const warning of warnings) log.warn(warning)
  const { masqueradeAll, masqueradeBit, detectLocal } = options
  const seconds = (ms: number) => Math.ceil(ms / 1000)
  return {
    ...{ masqueradeAll, masqueradeBit, detectLocal, nodePortAddresses, log },
    name: textFlag(flags, 'serviceProxyName') ?? 'kpng',
    scheduler: settings.ipvsScheduler,
    excludeCidrs: settings.ipvsExcludeCidrs,
    strictArp: settings.ipvsStrictArp,
    timeouts: {
      tcp: seconds(settings.ipvsTcpTimeoutMs),
      tcpFin: seconds(settings.ipvsTcpFinTimeoutMs),
      udp: seconds(settings.ipvsUdpTimeoutMs),
    },
    drainLimitMs: milliseconds('--drain-limit', textFlag(flags, 'drainLimit') ?? '15m'),
    ...(await addressOptions(flags, resolved)),
    onSysctlsChanged: (changes) => rememberChanges(changes, { log }),
  }
}
