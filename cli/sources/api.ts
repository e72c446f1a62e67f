import { addClientFlags, clientOptions } from '../client-flags.js'
import type { SourceCommand } from './source.js'

export const apiSource: SourceCommand = {
  name: 'api',
  summary: "relay another kpng's state",
  example: 'kpng api --api 10.0.0.5:12090 to-api --listen unix:///run/kpng/kpng.sock',
  addFlags: (command) => addClientFlags(command, 'api-client-'),
  run: async (flags, state, { log, signal, source }) => {
    const options = await clientOptions(flags, 'apiClient')
    const { relayApi } = await import('@kpng/core/sources/api')
    await relayApi({ ...options, ...state, log, signal, status: source.watch('core') })
  },
}
