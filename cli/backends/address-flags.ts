import type { Command } from 'commander'
import { booleanFlag, type Context, type Flags } from '../context.js'
import { booleanOption } from '../help.js'

/** Which addresses of Services a backend serves. */
export const addAddressFlags = (command: Command): Command =>
  command
    .addOption(booleanOption('--external-ips', 'serve spec.externalIPs', true))
    .addOption(
      booleanOption(
        '--protect-node-and-pod-ips',
        'do not serve external and load-balancer IPs that are addresses of this node or of a pod',
        false,
      ),
    )

/** External IPs are served only if neither the flag nor kube-proxy's feature gate says otherwise. */
export async function addressOptions(flags: Flags, resolved: Context['resolved']) {
  const { isOn } = await import('@kpng/node/config')
  const allowed = isOn(resolved?.settings.featureGates ?? {}, 'AllowServiceExternalIPs')
  return {
    externalIps: allowed && booleanFlag(flags, 'externalIps', true),
    protectNodeAndPodIps: booleanFlag(flags, 'protectNodeAndPodIps', false),
  }
}
