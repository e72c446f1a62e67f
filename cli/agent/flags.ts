import type { SettingKey } from '@kpng/node'
import type { SettingFlag } from '@kpng/node/flags'
import { settingFlags } from '@kpng/node/flags'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Flags } from '../context.js'
import { groups } from '../help.js'

/** Settings whose flags belong to the source or to every command, with the names of those flags. */
const elsewhere: { readonly [K in SettingKey]?: string } = {
  kubeconfig: 'kubeconfig',
  verbosity: 'v',
  logFormat: 'logFormat',
}

/** The settings that a backend outside the kernel takes as flags. */
const forEverybody: readonly SettingKey[] = [
  'healthzBindAddress',
  'metricsBindAddress',
  'bindAddressHardFail',
  'enableProfiling',
  'oomScoreAdj',
  'syncPeriodMs',
  'featureGates',
]

/** The settings that it takes from a configuration file as well. */
const fromFile: readonly SettingKey[] = [
  'kubeconfig',
  'verbosity',
  'logFormat',
  'hostnameOverride',
  'clusterCidrs',
  'nodePortAddresses',
]

/** The settings of the kernelspace mode of Windows. */
const ofWindowsKernel: readonly SettingKey[] = [
  'networkName',
  'sourceVip',
  'enableDsr',
  'rootHnsEndpointName',
  'forwardHealthCheckVip',
]

/** Defaults of kpng where they are not kube-proxy's. */
const kpngDefaults: { readonly [K in SettingKey]?: string } = { minSyncPeriodMs: '0s' }

const pages: readonly SettingKey[] = [
  'healthzBindAddress',
  'metricsBindAddress',
  'bindAddressHardFail',
  'enableProfiling',
]
const ofNode: readonly SettingKey[] = ['hostnameOverride', 'bindAddress', 'oomScoreAdj']

function groupOf(key: SettingKey): string {
  if (key.startsWith('conntrack')) return groups.conntrack
  if (pages.includes(key)) return groups.pages
  return ofNode.includes(key) ? groups.node : groups.backend
}

function ratio(text: string): string {
  if (text !== '' && Number(text) >= 0 && Number(text) <= 1) return text
  throw new InvalidArgumentError('Write a number from 0 (none) to 1 (all).')
}

/** Which settings a backend takes as flags: all of kube-proxy's on Linux, those of its kernelspace mode, or only those about health and metrics. */
export type AgentFlags = 'kernel' | 'kernelspace' | 'health'

/** A backend with a node agent. */
export interface Agent {
  /** The answer to /proxyMode. */
  readonly mode: string
  readonly flags: AgentFlags
}

const takenBy = (which: AgentFlags): readonly SettingFlag[] =>
  settingFlags.filter(({ key }) => {
    if (key in elsewhere) return false
    if (ofWindowsKernel.includes(key)) return which === 'kernelspace'
    return which === 'kernel' || forEverybody.includes(key)
  })

/** The flags of a node agent: a configuration file, health, metrics, tracing. */
export function addAgentFlags(command: Command, agent: Agent): void {
  command
    .optionsGroup(groups.node)
    .option('--config <file>', 'a KubeProxyConfiguration of kube-proxy; flags override it')
    .option('--init-only', 'set the sysctls and the OOM score, which need privileges, and exit')
    .optionsGroup(groups.pages)
    .option(
      '--otlp-endpoint <url>',
      'send traces to this collector, such as http://127.0.0.1:4318 (default: no traces)',
    )
    .option('--trace-ratio <ratio>', 'share of the traces to keep, 0 to 1 (default: 1)', ratio)
  for (const { key, flag, summary, boolean, placeholder, fallback } of takenBy(agent.flags)) {
    const option = new Option(boolean ? `--${flag} [bool]` : `--${flag} <${placeholder}>`, summary)
    // Not commander's default: a flag that was not given leaves the value to the configuration file.
    option.default(undefined, kpngDefaults[key] ?? fallback).helpGroup(groupOf(key))
    // Accepted everywhere because kube-proxy's command lines may have it.
    command.addOption(option.hideHelp(isForOtherModes(key, agent.mode)))
  }
  // contextFrom resolves these flags if it finds an agent.
  command.setOptionValue('agent', agent)
}

const isForOtherModes = (key: SettingKey, mode: string): boolean =>
  (key === 'localhostNodePorts' && mode !== 'iptables') || (key.startsWith('ipvs') && mode !== 'ipvs')

/** The mode of the agent, and the settings that it uses of a configuration file; undefined: all. */
export function agentOf(flags: Flags): { readonly mode: string; readonly uses: readonly SettingKey[] | undefined } {
  const { mode, flags: which } = flags.agent as Agent
  const uses = [...forEverybody, ...fromFile, ...(which === 'kernelspace' ? ['mode' as const, ...ofWindowsKernel] : [])]
  return { mode, uses: which === 'kernel' ? undefined : uses }
}

/** The settings' names by the camel-case names of their flags. */
export function settingsGiven(flags: Flags): Record<string, string | boolean> {
  const given: Record<string, string | boolean> = {}
  const take = (key: string, name: string) => {
    const value = flags[name]
    if (typeof value === 'string' || typeof value === 'boolean') given[key] = value
  }
  for (const { key, flag } of takenBy((flags.agent as Agent).flags)) {
    take(
      key,
      flag.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase()),
    )
  }
  for (const [key, name] of Object.entries(elsewhere)) take(key, name)
  // kpng's own flag for it; every command has it.
  take('hostnameOverride', 'nodeName')
  return given
}
