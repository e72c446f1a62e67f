// `npm test`: installs what it needs, then types, lint, boundaries, generated code, and every test.
import { installTools } from './debian.js'
import { bin, build, install, run } from './steps.js'

const step = (name, work) => {
  const started = Date.now()
  console.log(`\n── ${name}`)
  work()
  console.log(`   ${name}: ${((Date.now() - started) / 1000).toFixed(1)} s`)
}

install()
installTools()
step('build', build)
step('types of tests, examples and benchmarks', () => run(bin('tsc'), ['-p', 'tsconfig.tests.json']))
step('lint', () => run(bin('biome'), ['check', '.']))
step('boundaries', () => run(process.execPath, ['scripts/boundaries.js']))
step('generated code', () => run(process.execPath, ['scripts/generate.js', '--check']))
step('tests', () => run(bin('vitest'), ['run', ...process.argv.slice(2)]))
