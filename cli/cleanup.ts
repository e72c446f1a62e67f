import { KpngError, messageOf } from '@kpng/api'
import type { Backend } from '@kpng/client'
import { type Context, type Flags, given, textFlag } from './context.js'

/** Everything that kpng may have left on this machine, by the backend that made it. */
async function backends({ log }: Context, stateFile: string | undefined): Promise<Map<string, Backend>> {
  const { nftBackend } = await import('@kpng/backend-nft')
  const { iptablesCapture, netshCapture, nftCapture, userspaceBackend } = await import('@kpng/backend-userspace')
  if (process.platform === 'win32') {
    const capture = netshCapture({ log, ...given('stateFile', stateFile) })
    return new Map([['winuserspace', userspaceBackend({ log, capture })]])
  }
  return new Map<string, Backend>([
    ['nft', nftBackend({ log })],
    ['userspacelin', userspaceBackend({ log, capture: nftCapture({ log }) })],
    ['userspacelin-iptables', userspaceBackend({ log, capture: iptablesCapture({ log }) })],
  ])
}

/** Takes away what kpng's backends left: their own tables and chains, and nothing of anybody else. */
export async function cleanUp(flags: Flags, context: Context): Promise<void> {
  const only = textFlag(flags, 'backend')
  const all = await backends(context, textFlag(flags, 'stateFile'))
  if (only !== undefined && !all.has(only)) {
    throw new KpngError(
      'usage',
      `There is no backend "${only}" to clean up after. There are ${[...all.keys()].join(', ')}.`,
    )
  }
  const failed: string[] = []
  for (const [name, backend] of all) {
    if (only !== undefined && only !== name) continue
    try {
      await backend.cleanup()
      context.log.info('Cleaned up', { backend: name })
    } catch (error) {
      failed.push(`${name}: ${messageOf(error)}`)
    }
  }
  if (failed.length > 0) throw new KpngError('unavailable', `Not everything could be taken away. ${failed.join(' ')}`)
}
