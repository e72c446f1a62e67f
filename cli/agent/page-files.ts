import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { PageFiles } from '@kpng/node/dashboard'

/**
 * The live page of the package @kpng/dashboard. Undefined if it was not built, or not installed. In a single-file kpng,
 * scripts/package/page-files.js stands in for this file.
 */
export async function pageFiles(): Promise<PageFiles | undefined> {
  const { pageFilesIn } = await import('@kpng/node/dashboard')
  try {
    const found = createRequire(import.meta.url).resolve('@kpng/dashboard/package.json')
    return await pageFilesIn(join(dirname(found), 'dist'))
  } catch {
    return undefined
  }
}
