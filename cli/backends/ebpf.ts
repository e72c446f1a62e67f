import type { EbpfOptions } from '@kpng/backend-ebpf'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { type Context, type Flags, textFlag } from '../context.js'
import type { BackendCommand } from './backend.js'
import { addNftFlags, nftOptionsFrom } from './nft.js'

export const ebpfCommand: BackendCommand = {
  name: 'to-ebpf',
  summary: 'send sockets to endpoints by eBPF when they connect, and everything else by nftables (needs root)',
  examples: ['--cluster-cidr 10.244.0.0/16', '--cgroup /host/sys/fs/cgroup --ebpf-balancing maglev'],
  agent: { mode: 'nftables', flags: 'kernel' },
  addFlags: (command: Command) =>
    addNftFlags(command)
      .option(
        '--cgroup <path>',
        "the cgroup (version 2) whose sockets are served (default: the root of the node's cgroups)",
      )
      .option('--bpffs <path>', 'the bpf file system, which keeps programs and maps while kpng restarts', '/sys/fs/bpf')
      .addOption(
        new Option('--ebpf-balancing <way>', 'random, or maglev: by the network namespace of the client')
          .choices(['random', 'maglev'])
          .default('random'),
      )
      .option('--ebpf-max-endpoints <count>', 'how many endpoints the eBPF maps can hold', wholeNumber, 131_072),
  create: async (flags, context) => {
    const { ebpfBackend } = await import('@kpng/backend-ebpf')
    return ebpfBackend(await optionsFrom(flags, context))
  },
}

function wholeNumber(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Write a number such as 131072.')
}

async function optionsFrom(flags: Flags, context: Context): Promise<EbpfOptions> {
  const { settings } = context.resolved as NonNullable<Context['resolved']>
  const cgroup = textFlag(flags, 'cgroup')
  return {
    ...(await nftOptionsFrom(flags, context, 'ebpf')),
    ...(cgroup === undefined ? {} : { cgroup }),
    bpffs: textFlag(flags, 'bpffs') ?? '/sys/fs/bpf',
    balancing: flags.ebpfBalancing as NonNullable<EbpfOptions['balancing']>,
    maxEndpoints: flags.ebpfMaxEndpoints as number,
    localhostNodePorts: settings.localhostNodePorts,
  }
}
