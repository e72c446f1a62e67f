import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { dump } from 'js-yaml'
import type { KubernetesObject } from '../cases/case.js'
import type { Feed } from './feed.js'

/** A folder with one file of manifests, replaced as a whole: a reader sees the old state or the new one. */
export async function manifestsFeed(folder: string): Promise<Feed> {
  const manifests = join(folder, 'manifests')
  await mkdir(manifests)
  const write = async (objects: readonly KubernetesObject[]) => {
    const text = objects.map((object) => dump(object, { noRefs: true, lineWidth: -1, skipInvalid: true })).join('---\n')
    // Outside the folder, so that nobody who watches it reads a half-written file.
    const fresh = join(folder, 'objects.yaml')
    await writeFile(fresh, text)
    await rename(fresh, join(manifests, 'objects.yaml'))
  }
  return {
    placeholders: { manifests },
    apply: (objects, canary) => write([...objects, ...canary]),
    async close() {},
  }
}
