import { addClientFlags, clientOptions } from '../client-flags.js'
import type { SourceCommand } from './source.js'

export const apiSource: SourceCommand = {
  name: 'api',
  summary: 'relay the state of another kpng',
  example: 'kpng api --api 10.0.0.5:12090',
  addFlags: (command) => addClientFlags(command, 'api-client-'),
  start: async (flags, state, { log, signal, source }) => {
    const options = await clientOptions(flags, 'apiClient')
    const { relayApi } = await import('@kpng/core/sources/api')
    return { ended: relayApi({ ...options, ...state, log, signal, status: source.watch('core') }) }
  },
}
