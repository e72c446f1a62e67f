// An esbuild plugin. A thread has a script of its own, `new URL('./worker.js', import.meta.url)` in our sources. In a single file there is
// nothing beside it, so the script and all that it imports becomes a text, which a thread can be started with as a data: URL.
import { readFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

const script = /new URL\(\s*'(\.\/[\w-]*worker)\.js'\s*,\s*import\.meta\.url\s*\)/

export const workerScripts = (root) => ({
  name: 'worker-scripts',
  setup(build) {
    build.onLoad({ filter: /[/\\]script\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8')
      const [, name] = script.exec(text) ?? []
      if (name === undefined) return undefined
      const worker = await textOf(build, root, resolve(dirname(path), `${name}.ts`))
      return { contents: text.replace(script, () => dataUrl(worker)), loader: 'ts' }
    })
  },
})

/** A module without imports other than of Node. */
async function textOf({ esbuild, initialOptions }, root, entry) {
  const { outputFiles } = await esbuild.build({
    absWorkingDir: root,
    entryPoints: [entry],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: ['kpng-source'],
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    charset: 'ascii',
    alias: { koffi: join(root, 'scripts', 'package', 'koffi-library.js') },
    logLevel: initialOptions.logLevel,
  })
  return outputFiles[0].text
}

/** An expression. What the script looks for beside itself is beside the single file. */
const dataUrl = (text) =>
  `new URL('data:text/javascript,' + encodeURIComponent(
    'const __filename = ' + JSON.stringify(__filename) + ', __dirname = ' + JSON.stringify(__dirname) + ';' + ${JSON.stringify(text)}
  ))`
