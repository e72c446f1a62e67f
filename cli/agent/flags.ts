import type { SettingKey } from '@kpng/node'
import type { SettingFlag } from '@kpng/node/flags'
import { settingFlags } from '@kpng/node/flags'
import type { Command } from 'commander'
import type { Flags } from '../context.js'

/** Settings whose flags the source and every command have already, and the names that those flags have. */
const elsewhere: { readonly [K in SettingKey]?: string } = {
  kubeconfig: 'kubeconfig',
  verbosity: 'v',
  logFormat: 'logFormat',
}

/** What a backend that is not in the kernel can use of them, by flags. */
const forEverybody: readonly SettingKey[] = [
  'healthzBindAddress',
  'metricsBindAddress',
  'bindAddressHardFail',
  'enableProfiling',
  'oomScoreAdj',
  'syncPeriodMs',
]

/** What it can use of a configuration file beyond those. */
const fromFile: readonly SettingKey[] = [
  'kubeconfig',
  'verbosity',
  'logFormat',
  'hostnameOverride',
  'clusterCidrs',
  'nodePortAddresses',
]

/** Which settings a backend takes as flags: all of kube-proxy's, or only those about health and metrics. */
export type AgentFlags = 'kernel' | 'health'

/** A backend with a node agent. */
export interface Agent {
  /** The answer to /proxyMode. */
  readonly mode: string
  readonly flags: AgentFlags
}

const takenBy = (which: AgentFlags): readonly SettingFlag[] =>
  settingFlags.filter(({ key }) => !(key in elsewhere) && (which === 'kernel' || forEverybody.includes(key)))

/** The flags of a node agent: a configuration file, health, metrics, tracing. */
export function addAgentFlags(command: Command, agent: Agent): void {
  command
    .option('--config <file>', 'a KubeProxyConfiguration; flags come before it')
    .option('--init-only', 'set what needs rights (conntrack, OOM score), and end')
    .option('--otlp-endpoint <url>', 'send traces to this collector (OTLP over HTTP), such as http://127.0.0.1:4318')
    .option('--trace-ratio <part>', 'the part of traces that is kept, 0 to 1; default: all')
  for (const { flag, summary, boolean } of takenBy(agent.flags)) {
    command.option(boolean ? `--${flag} [bool]` : `--${flag} <value>`, summary)
  }
  // Tells whoever makes the context that these flags are to be resolved.
  command.setOptionValue('agent', agent)
}

/** Of the agent that the flags are for: its mode, and what it uses of a configuration file; undefined: everything. */
export function agentOf(flags: Flags): { readonly mode: string; readonly uses: readonly SettingKey[] | undefined } {
  const { mode, flags: which } = flags.agent as Agent
  return { mode, uses: which === 'kernel' ? undefined : [...forEverybody, ...fromFile] }
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
  // kpng's own flag for it, on every command.
  take('hostnameOverride', 'nodeName')
  return given
}
