import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { runProgram } from '@kpng/linux'
import { startPlayground } from '@kpng/playground'
import { load } from 'js-yaml'
import { describe, expect, onTestFinished, test } from 'vitest'
import { hasKubectl, render, renderWith } from './testing/kustomize.js'
import type { Manifest } from './testing/manifest.js'

// Every folder that operators can name renders, also one that deploy.test.ts has not heard of.

const here = new URL('.', import.meta.url).pathname
const folders = readdirSync(here, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('kustomization.yaml'))
  .map((file) => ({ folder: dirname(file), ...(load(readFileSync(join(here, file), 'utf8')) as { kind: string }) }))
const named = (kind: string) => folders.filter((one) => one.kind === kind).map(({ folder }) => folder)

/** What a component is added to. */
const baseOf = (folder: string) => {
  if (folder === 'components/winkernel') return 'overlays/windows'
  return folder === 'components/cert-manager' || folder === 'components/core-in-pod-network'
    ? 'overlays/central'
    : 'overlays/one-process'
}
/** A component is a part of what it is tried with already, or gets a value that only operators know. */
const alone = new Map<string, object>([
  [
    'components/api-server',
    {
      configMapGenerator: [
        {
          name: 'kpng',
          behavior: 'merge',
          literals: ['KUBERNETES_SERVICE_HOST=10.0.0.5', 'KUBERNETES_SERVICE_PORT=6443'],
        },
      ],
    },
  ],
  ['components/health', {}],
  ['components/kubeadm', {}],
  ['components/kube-proxy-config', {}],
])

const renderComponent = (folder: string): Manifest[] =>
  renderWith(join(here, alone.has(folder) ? 'base' : baseOf(folder)), [join(here, folder)], alone.get(folder))

describe.skipIf(!hasKubectl)('kubectl renders', () => {
  test.each(named('Kustomization'))('%s', (folder) => expect(render(join(here, folder)).length).toBeGreaterThan(0))

  test.each(named('Component').filter((folder) => folder.startsWith('components/')))(
    '%s, and it makes a difference',
    (folder) => {
      const without = render(join(here, alone.has(folder) ? 'base' : baseOf(folder)))
      expect(JSON.stringify(renderComponent(folder))).not.toBe(JSON.stringify(without))
    },
  )
})

describe.skipIf(!hasKubectl)('an API server takes', () => {
  test('what it knows of every overlay and component, in a dry run on the server', async () => {
    const playground = await startPlayground()
    onTestFinished(() => playground.close())
    const kubectl = (args: readonly string[], input = '') =>
      runProgram('kubectl', ['--kubeconfig', playground.kubeconfigPath, ...args], { input, limitMs: 30_000 })
    const known = (await kubectl(['api-resources', '--no-headers'])).output.trim().split('\n')
    const kinds = new Set(known.map((line) => line.split(/\s+/).at(-1) as string))
    const all = [
      ...named('Kustomization').flatMap((folder) => render(join(here, folder))),
      ...named('Component')
        .filter((folder) => folder.startsWith('components/'))
        .flatMap(renderComponent),
    ].filter(({ kind }) => kinds.has(kind))
    const texts = [...new Set(all.map((manifest) => JSON.stringify(manifest)))]
    // Each by itself: the same object is there in several forms.
    for (const text of texts) {
      const { code, errors } = await kubectl(['apply', '--server-side', '--dry-run=server', '-f', '-'], text)
      expect({ code, errors }, text).toEqual({ code: 0, errors: '' })
    }
    expect([...new Set(all.map(({ kind }) => kind))]).toEqual(expect.arrayContaining(['Deployment', 'Service']))
  })
})
