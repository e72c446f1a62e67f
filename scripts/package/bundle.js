// The whole command as one script: the only form that a single-file executable can run.
import { join } from 'node:path'
import { bakedFiles } from './baked-files.js'
import { asScript, nodeModulesByRequire } from './node-modules-by-require.js'
import { pageFiles } from './page-files.js'

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
    alias: { koffi: join(root, 'scripts', 'package', 'koffi-library.js') },
    plugins: [nodeModulesByRequire, pageFiles(root), bakedFiles(root)],
    logLevel: 'warning',
  })
  return { text: asScript(outputFiles[0].text), inputs: Object.keys(metafile.inputs).sort() }
}
