import { existsSync } from 'node:fs'

/** The script of a thread. In a bundle of kpng it is replaced by one that has everything in it (scripts/package/worker-scripts.js). */
const script = new URL('./worker.js', import.meta.url)

/** Undefined where it is not compiled, as in tests, which run from the sources. */
export const threadScript = (): URL | undefined =>
  script.protocol === 'data:' || existsSync(script) ? script : undefined
