import { KpngError } from '@kpng/api'
import { given, textFlag } from '../context.js'
import { addLabelFlags, labelOptions } from '../label-flags.js'
import type { SourceCommand } from './source.js'

export const fileSource: SourceCommand = {
  name: 'file',
  summary: 'read the state from a file or a folder, and follow its changes',
  example: 'kpng file -i examples/state.yaml',
  addFlags: (command) =>
    addLabelFlags(
      command
        .option(
          '-i, --input <path>',
          'a state file, or Kubernetes manifests: a file or a folder of them',
          'globalv1-state.yaml',
        )
        .option(
          '--service-proxy-name <name>',
          'of manifests, take only Services with this service-proxy-name label (default: those without one)',
        ),
    ),
  start: async (flags, state, { log, signal }) => {
    const { watchFile } = await import('@kpng/core/sources/file')
    const path = textFlag(flags, 'input')
    if (path === undefined) throw new KpngError('usage', '--input needs the path of a file or a folder.')
    const serviceProxyName = given('serviceProxyName', textFlag(flags, 'serviceProxyName'))
    const { store } = state
    const synced = new Promise<void>((resolve) => {
      const forget = store.onChange(() => {
        if (!store.synced) return
        forget()
        resolve()
      })
    })
    const ended = watchFile({ path, ...state, log, signal, ...serviceProxyName, ...labelOptions(flags) })
    // A file that cannot be read or understood is an error before anything is served or written.
    await Promise.race([synced, ended])
    return { ended }
  },
}
