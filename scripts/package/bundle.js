// The whole command as one CommonJS file: the only form that a single-file executable can run.
import { join } from 'node:path'
import { bakedFiles } from './baked-files.js'

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
    format: 'cjs',
    target: 'node20',
    conditions: ['kpng-source'],
    // What only one command needs is set up when that command runs, as in the many files it comes from; and the names of
    // functions stay, since they stand in what users report.
    minifyWhitespace: true,
    minifySyntax: true,
    keepNames: false,
    legalComments: 'none',
    alias: { koffi: join(root, 'scripts', 'package', 'koffi-library.js') },
    plugins: [bakedFiles(root)],
    // A package that looks for files beside itself would not find them at run time.
    logOverride: { 'empty-import-meta': 'error' },
    logLevel: 'warning',
  })
  return { text: outputFiles[0].text, inputs: Object.keys(metafile.inputs) }
}
