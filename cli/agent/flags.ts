import type { SettingFlag } from '@kpng/node/flags'
import { settingFlags } from '@kpng/node/flags'
import type { Command } from 'commander'

/** Said elsewhere already: by the source, and by the flags of every command. */
const elsewhere: readonly string[] = ['kubeconfig', 'verbosity', 'logFormat']

/** What a backend that is no kernel one can use of them. */
const forEverybody: readonly string[] = [
  'healthzBindAddress',
  'metricsBindAddress',
  'bindAddressHardFail',
  'enableProfiling',
  'oomScoreAdj',
  'syncPeriodMs',
]

/** Which settings a backend takes as flags: all of kube-proxy's, or only those about health and metrics. */
export type AgentFlags = 'kernel' | 'health'

const takenBy = (which: AgentFlags): readonly SettingFlag[] =>
  settingFlags.filter(({ key }) => !elsewhere.includes(key) && (which === 'kernel' || forEverybody.includes(key)))

/** The flags of a node agent: a configuration file, health, metrics, tracing. */
export function addAgentFlags(command: Command, which: AgentFlags): void {
  command
    .option('--config <file>', 'a KubeProxyConfiguration; flags come before it')
    .option('--init-only', 'set what needs rights (conntrack, OOM score), and end')
    .option('--otlp-endpoint <url>', 'send traces to this collector (OTLP over HTTP), such as http://127.0.0.1:4318')
    .option('--trace-ratio <part>', 'the part of traces that is kept, 0 to 1; default: all')
  for (const { flag, summary, boolean } of takenBy(which)) {
    command.option(boolean ? `--${flag} [bool]` : `--${flag} <value>`, summary)
  }
  // Tells whoever makes the context that these flags are to be resolved.
  command.setOptionValue('agentFlags', which)
}

/** The settings' names by the camel-case names of their flags. */
export function settingsGiven(flags: Readonly<Record<string, unknown>>): Record<string, string | boolean> {
  const given: Record<string, string | boolean> = {}
  for (const { key, flag } of takenBy(flags.agentFlags as AgentFlags)) {
    const value = flags[flag.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())]
    if (typeof value === 'string' || typeof value === 'boolean') given[key] = value
  }
  return given
}
