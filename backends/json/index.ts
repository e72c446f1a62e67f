import { type Backend, jsonLines } from '@kpng/client'

/** Prints the whole view on each change: one line a service, as Go kpng's `kpng-json` did. */
export function jsonBackend(write: (text: string) => void | Promise<void>): Backend {
  return {
    setup: async () => {},
    sync: async (view) => write(jsonLines(view)),
    cleanup: async () => {},
    close: async () => {},
  }
}
