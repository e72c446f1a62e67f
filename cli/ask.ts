import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { type Flags, textFlag } from './context.js'
import { groups } from './help.js'

// Which running kpng a question goes to.

export const withSocketFlags = (command: Command): Command =>
  command
    .optionsGroup(groups.source)
    .option(
      '--agent-socket <path>',
      'the socket of a running kpng (default: /run/kpng/agent.sock, else /run/kpng/core.sock)',
    )
    .option('--service-proxy-name <name>', 'ask the kpng that serves Services with this service-proxy-name')

export async function ask<Answer>(flags: Flags, path: string, limitMs?: number): Promise<Answer> {
  const { askAgent } = await import('@kpng/node/agent-api')
  return await askAgent<Answer>(await socketOf(flags), path, limitMs)
}

/** @param prefersCore the question is about other nodes */
export async function socketOf(flags: Flags, prefersCore = textFlag(flags, 'node') !== undefined): Promise<string> {
  const { agentSocketPath, coreSocketPath } = await import('@kpng/node/agent-api')
  const given = textFlag(flags, 'agentSocket')
  if (given !== undefined) return given
  const ofNode = agentSocketPath(textFlag(flags, 'serviceProxyName'))
  const asksCore = prefersCore || !existsSync(ofNode)
  return asksCore && existsSync(coreSocketPath()) ? coreSocketPath() : ofNode
}
