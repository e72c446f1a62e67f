// Bundles the page into dist/: index.html, one script, one style sheet, and the licences of what is inside. Plain JavaScript: scripts/build.js runs it.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = dirname(fileURLToPath(import.meta.url))
const output = join(folder, 'dist')
const ignored = new Set(['dist', 'testing', 'node_modules'])

/** Bundled into the script, by the folder below node_modules that has the licence. */
const libraries = ['preact', '@preact/signals', '@preact/signals-core']

/** When a source was last changed. */
function changedAt(path) {
  if (!statSync(path).isDirectory()) return /\.test\.ts$/.test(path) ? 0 : statSync(path).mtimeMs
  const names = readdirSync(path).filter((name) => !ignored.has(name))
  return Math.max(0, ...names.map((name) => changedAt(join(path, name))))
}

/** Builds the page unless dist/ is newer than every source. */
export async function buildDashboard() {
  const page = join(output, 'index.html')
  if (existsSync(page) && statSync(page).mtimeMs >= changedAt(folder)) return
  const { build } = await import('esbuild')
  rmSync(output, { recursive: true, force: true })
  mkdirSync(output, { recursive: true })
  const { metafile } = await build({
    absWorkingDir: folder,
    entryPoints: { app: 'main.tsx', style: 'styles/index.css' },
    entryNames: '[name]-[hash]',
    outdir: 'dist',
    bundle: true,
    minify: true,
    metafile: true,
    format: 'esm',
    charset: 'utf8',
    target: ['chrome123', 'firefox120', 'safari17.5'],
    // Shorter than the automatic form that the type checker knows, by half a kilobyte.
    ...{ jsx: 'transform', jsxFactory: 'h', jsxFragment: 'Fragment', inject: ['jsx.js'] },
    tsconfigRaw: {},
    conditions: ['kpng-source'],
    legalComments: 'none',
    logLevel: 'warning',
  })
  const names = Object.keys(metafile.outputs).map((path) => basename(path))
  const named = (extension) => names.find((name) => name.endsWith(extension))
  const html = readFileSync(join(folder, 'index.html'), 'utf8')
    .replace('app.css', named('.css'))
    .replace('app.js', named('.js'))
    .replace(/\n\s+/g, '\n')
  writeFileSync(join(output, 'licenses.txt'), licenses())
  writeFileSync(page, html)
}

function licenses() {
  const texts = libraries.map((name) => {
    const path = join(folder, '..', 'node_modules', name)
    const { version } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'))
    return `${name} ${version}\n\n${readFileSync(join(path, 'LICENSE'), 'utf8').trim()}\n`
  })
  return texts.join('\n---\n\n')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildDashboard()
