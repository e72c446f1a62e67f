import { join } from 'node:path'
import type { Backend } from '@kpng/client'
import type { StateCache } from '@kpng/node'
import type { Command } from 'commander'
import { type Context, type Flags, textFlag } from '../context.js'

/** systemd names the folder of a unit with `StateDirectory=` in the environment. */
function defaultFolder(): string {
  const [given] = (process.env.STATE_DIRECTORY ?? '').split(':')
  if (given) return given
  return process.platform === 'win32' ? join(process.env.ProgramData ?? 'C:\\ProgramData', 'kpng') : '/var/lib/kpng'
}

/** A specialised proxier runs beside the main one, with a file of its own. */
function defaultFile(serviceProxyName: string | undefined): string {
  const suffix = serviceProxyName === undefined ? '' : `-${serviceProxyName.replace(/[^a-zA-Z0-9._-]/g, '-')}`
  return join(defaultFolder(), `state-cache${suffix}`)
}

export const addStateCacheFlag = (command: Command): Command =>
  command.option(
    '--state-cache <file>',
    `keep the last state there, for a start without an API server; empty: do not; default: ${defaultFile(undefined)}`,
  )

/** The state cache that the flags ask for. None for a source that needs none, such as a file, nor with --once. */
export async function stateCacheFrom(
  flags: Flags,
  backend: Backend,
  context: Context,
): Promise<StateCache | undefined> {
  const { origin, nodeName, source: status, log } = context
  if (!origin || flags.once || flags.stateCache === '') return undefined
  const serviceProxyName = textFlag(flags, 'serviceProxyName')
  const path = textFlag(flags, 'stateCache') ?? defaultFile(serviceProxyName)
  const { StateCache } = await import('@kpng/node')
  const ofProxy = serviceProxyName === undefined ? '' : ` for ${serviceProxyName}`
  return new StateCache({ path, nodeName, backend, status, log, origin: async () => `${await origin()}${ofProxy}` })
}

/** The API server or the core that the state comes from, as text. Undefined: a file or a record, which is no state to start with. */
export function originOf(source: string, flags: Flags, kube: Context['kube']): Context['origin'] {
  if (kube) return () => kube.cluster()
  return source === 'file' || source === 'replay' ? undefined : async () => `kpng at ${textFlag(flags, 'api')}`
}
