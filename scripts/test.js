// `npm test`: installs what it needs, then types, lint, boundaries, generated code, and every test.
import { buildVm, installTools } from './debian.js'
import { bin, build, install, run } from './steps.js'

const step = (name, work) => {
  const started = Date.now()
  console.log(`\n── ${name}`)
  work()
  console.log(`   ${name}: ${((Date.now() - started) / 1000).toFixed(1)} s`)
}

/** No part takes half as long. A test file that hangs is reported before (see hang-reporter.js); this is for the runner itself. */
const longestMs = 20 * 60_000
const reporters = ['--reporter=default', '--reporter=./scripts/hang-reporter.js']

install()
installTools()
buildVm()
step('build', build)
step('types of tests, examples and benchmarks', () => run(bin('tsc'), ['-p', 'tsconfig.tests.json']))
step('lint', () => run(bin('biome'), ['check', '.']))
step('boundaries', () => run(process.execPath, ['scripts/boundaries.js']))
step('generated code', () => run(process.execPath, ['scripts/generate.js', '--check']))
// Two parts: see vitest.config.ts. Files that are named on the command line may be in either of them.
const words = process.argv.slice(2)
for (const part of words.length > 0 ? [''] : ['together', 'alone']) {
  const env = { ...process.env, KPNG_TESTS: part }
  step(`tests ${part}`.trim(), () => run(bin('vitest'), ['run', ...reporters, ...words], { env, timeout: longestMs }))
}
