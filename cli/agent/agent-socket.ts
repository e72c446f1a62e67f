import type { Command } from 'commander'
import { type Flags, textFlag } from '../context.js'

export const addAgentSocketFlag = (command: Command): Command =>
  command.option(
    '--agent-socket <path>',
    'where kpng status, get and explain ask this kpng; empty: nowhere (default: /run/kpng/agent.sock, or agent-<service-proxy-name>.sock)',
  )

/** The socket that the flags ask for. None with --once: nobody would be there to answer. */
export async function agentSocketOf(flags: Flags): Promise<string | undefined> {
  if (flags.once || flags.agentSocket === '') return undefined
  const { agentSocketPath } = await import('@kpng/node/agent-api')
  return textFlag(flags, 'agentSocket') ?? agentSocketPath(textFlag(flags, 'serviceProxyName'))
}
