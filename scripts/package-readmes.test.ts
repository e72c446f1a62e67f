import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = new URL('..', import.meta.url).pathname

// What authors of backends install. Their README is all that they have at hand.
const folders = ['api', 'client', 'dataplane', 'linux']

test('links in the READMEs of packages lead to the web, or to a file in the package', () => {
  const workspaces = folders.flatMap((folder) => ['--workspace', folder])
  const text = execFileSync('npm', ['pack', '--dry-run', '--json', ...workspaces], { cwd: root, stdio: 'pipe' })
  const packed = JSON.parse(String(text)) as { name: string; files: { path: string }[] }[]
  expect(packed).toHaveLength(folders.length)
  const broken = packed.flatMap(({ name, files }) => {
    const folder = name.replace('@kpng/', '')
    const links = [...readFileSync(join(root, folder, 'README.md'), 'utf8').matchAll(/\]\(([^)#]+)[^)]*\)/g)]
    return links
      .map(([, link]) => link as string)
      .filter((link) => !/^https?:/.test(link))
      .filter((link) => !files.some(({ path }) => path === link || path.startsWith(`${link}/`)))
      .map((link) => `${folder}/README.md: ${link}`)
  })
  expect(broken).toEqual([])
})
