// The whole command as one script. It starts in less time than hundreds of files, and it is the only form that a single-file
// executable can run.
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { bakedFiles } from './baked-files.js'
import { asScript, nodeModulesByRequire } from './node-modules-by-require.js'
import { pageFiles } from './page-files.js'
import { workerScripts } from './worker-scripts.js'

/** Bundles cli/ from its sources. Returns the text, and which files went into it. */
export async function bundle(root) {
  const { build } = await import('esbuild')
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: [join(root, 'scripts', 'package', 'entry.js')],
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: ['kpng-source'],
    // Less to read at start. The names of functions stay: they stand in what users report.
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    charset: 'ascii',
    alias: {
      koffi: join(root, 'scripts', 'package', 'koffi-library.js'),
      undici: join(root, 'scripts', 'package', 'undici-client.js'),
    },
    plugins: [nodeModulesByRequire, pageFiles(root), workerScripts(root), bakedFiles(root)],
    logLevel: 'warning',
  })
  const text = asciiOnly(asScript(outputFiles[0].text))
  return { text, inputs: Object.keys(metafile.inputs).sort() }
}

/**
 * The text as cli/bin/start.js runs it: a function, after a line with the digest, by which the code cache of this very text is recognised,
 * and the version.
 */
export function forNode(text, version) {
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16)
  return `// ${digest} ${version}\n(function (require, __filename, __dirname) {${text}})\n`
}

/** One byte per character, on disk and in memory. esbuild escapes everything but regular expressions. */
const asciiOnly = (text) =>
  text.replace(/[\u0080-\uffff]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
