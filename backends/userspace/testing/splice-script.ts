import { rmSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { bundle, programPath } from '../../../linux/testing/bundle.js'
import type { UserspaceOptions } from '../options.js'

// Tests run from the sources, where the script of a thread that forwards is not compiled.

/** The script as it is in the sources now. The file is removed when the process ends. */
export async function spliceScript(): Promise<URL> {
  const path = programPath('splice-worker')
  await bundle(new URL('../splice/worker.ts', import.meta.url), path)
  process.once('exit', () => rmSync(path, { force: true }))
  return pathToFileURL(path)
}

/** How TCP is forwarded, for suites that run with both. */
export const movers = process.platform === 'linux' ? (['portable', 'splice'] as const) : (['portable'] as const)

let script: Promise<URL> | undefined

/** The options that select it. One thread, so that endpoints are taken strictly in turn. */
export async function moverOptions(
  mover: (typeof movers)[number],
): Promise<Pick<UserspaceOptions, 'mover' | 'spliceScript' | 'spliceThreads'>> {
  if (mover === 'portable') return { mover }
  script ??= spliceScript()
  return { mover, spliceScript: await script, spliceThreads: 1 }
}
