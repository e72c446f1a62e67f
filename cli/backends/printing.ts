import { KpngError, messageOf } from '@kpng/api'
import type { Backend } from '@kpng/client'
import type { Context } from '../context.js'

/** A dry run: prints the rules for the first complete view, and ends. */
export function printing(render: (view: Parameters<Backend['sync']>[0]) => string, context: Context): Backend {
  return {
    setup: async () => {},
    sync: async (view) => {
      if (!view.node) {
        context.log.warn(
          'There is no Node object of this name: these rules lack its addresses, its zone and its pod CIDRs. Give the name with --node-name',
          { node: view.nodeName },
        )
      }
      try {
        console.log(render(view))
        context.stop()
      } catch (error) {
        // A backend is tried again after a failure; a dry run is not.
        context.stop(error instanceof KpngError ? error : new KpngError('invalid', messageOf(error), { cause: error }))
      }
    },
    cleanup: async () => {},
    close: async () => {},
  }
}
