// An esbuild plugin. Node runs the script of a single-file executable as CommonJS, which knows neither `import` nor a top-level
// `await`. Ours uses both, so it is bundled as a module in which nothing is left to import, and then put into a function.
import { builtinModules } from 'node:module'

const builtin = new Set(builtinModules)
const namespace = 'node-module'

export const nodeModulesByRequire = {
  name: 'node-modules-by-require',
  setup(build) {
    build.onResolve({ filter: /.*/ }, ({ path, kind }) => {
      if (!path.startsWith('node:') && !builtin.has(path)) return undefined
      return kind === 'require-call' ? { path, external: true } : { path, namespace }
    })
    build.onLoad({ filter: /.*/, namespace }, ({ path }) => ({
      contents: `module.exports = require(${JSON.stringify(path)})`,
    }))
  },
}

/** The text of a module without imports, as a script. */
export const asScript = (text) => `'use strict';(async () => {\n${text}\n})()\n`
