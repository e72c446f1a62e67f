import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { CORE_SCHEMA, loadAll } from 'js-yaml'
import type { Manifest } from './manifest.js'

export const hasKubectl = spawnSync('kubectl', ['kustomize', '--help'], { stdio: 'ignore' }).status === 0

export const manifestsIn = (text: string): Manifest[] => loadAll(text, null, { schema: CORE_SCHEMA }) as Manifest[]

export const render = (folder: string): Manifest[] =>
  manifestsIn(execFileSync('kubectl', ['kustomize', folder], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }))

/** An overlay with further components, as an operator's own kustomization would have it. */
export function renderWith(overlay: string, components: readonly string[], more: object = {}): Manifest[] {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'kpng-kustomize-'))
  try {
    const kustomization = {
      resources: [relative(folder, overlay)],
      components: components.map((component) => relative(folder, component)),
      ...more,
    }
    writeFileSync(join(folder, 'kustomization.yaml'), JSON.stringify(kustomization))
    return render(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
