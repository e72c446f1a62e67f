import type { Command } from 'commander'
import { booleanFlag, type Flags } from '../context.js'
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

export const addressOptions = (flags: Flags) => ({
  externalIps: booleanFlag(flags, 'externalIps', true),
  protectNodeAndPodIps: booleanFlag(flags, 'protectNodeAndPodIps', false),
})
