import { KpngError } from '@kpng/api'
import { given, textFlag } from '../context.js'
import { addAddressFlags, addressOptions } from './address-flags.js'
import type { BackendCommand } from './backend.js'

export const winkernelCommand: BackendCommand = {
  name: 'to-winkernel',
  agent: { mode: 'kernelspace', flags: 'kernelspace' },
  summary: 'program load balancers of the Host Network Service of Windows (experimental)',
  examples: ['--network-name cbr0', '--network-name vxlan0 --source-vip 10.244.1.2'],
  addFlags: (command) => addAddressFlags(command),
  create: async (flags, { log, resolved }) => {
    const { settings, origins } = resolved as NonNullable<typeof resolved>
    const { checkMode } = await import('@kpng/node')
    const { winkernelBackend } = await import('@kpng/backend-winkernel')
    checkMode(settings.mode, 'kernelspace')
    if (textFlag(flags, 'serviceProxyName') !== undefined) {
      throw new KpngError(
        'usage',
        'to-winkernel cannot run with --service-proxy-name: HNS does not know whose load balancers are whose, so two proxies would delete those of each other.',
      )
    }
    if (origins.nodePortAddresses !== 'default')
      log.warn('nodePortAddresses has no effect: HNS serves node ports on all addresses of the node')
    return winkernelBackend({
      ...given('networkName', settings.networkName === '' ? undefined : settings.networkName),
      sourceVip: settings.sourceVip,
      enableDsr: settings.enableDsr,
      rootEndpointName: settings.rootHnsEndpointName,
      forwardHealthCheckVip: settings.forwardHealthCheckVip,
      healthzPort: Number(settings.healthzBindAddress.split(':').at(-1)),
      checkIntervalMs: settings.syncPeriodMs,
      detectLocal: { mode: 'ClusterCIDR', cidrs: settings.clusterCidrs },
      ...(await addressOptions(flags, resolved)),
      log,
    })
  },
}
