import { existsSync } from 'node:fs'

/**
 * The script of a thread. A bundle of kpng has it as a text (scripts/package/worker-scripts.js). Undefined where it is not compiled, as
 * in tests, which run from the sources.
 */
export function threadScript(): URL | undefined {
  const script = new URL('./worker.js', import.meta.url)
  return script.protocol === 'data:' || existsSync(script) ? script : undefined
}
