// `npm test`: installs what it needs, then types, lint, boundaries, generated code, and every test.
import { buildVm, fetchWindowsNode, installTools } from './debian.js'
import { differences, machineState } from './machine-state.js'
import { bin, build, install, ownNamespace, run, runBeside } from './steps.js'

const step = (name, work) => {
  const started = Date.now()
  console.log(`\n── ${name}`)
  work()
  console.log(`   ${name}: ${((Date.now() - started) / 1000).toFixed(1)} s`)
}

/** No part takes half as long. A test file that hangs is reported before (see hang-reporter.js); this is for the runner itself. */
const longestMs = 60 * 60_000
const reporters = ['--reporter=default', '--reporter=./scripts/hang-reporter.js']

install()
installTools()
buildVm()
fetchWindowsNode()
step('build', build)
step('types of tests, examples and benchmarks', () => run(bin('tsc'), ['-p', 'tsconfig.tests.json']))
step('lint', () => run(bin('biome'), ['check', '.']))
step('boundaries', () => run(process.execPath, ['scripts/boundaries.js']))
step('generated code', () => run(process.execPath, ['scripts/generate.js', '--check']))
// The parts are in vitest.config.ts. Files that are named on the command line may be in any of them.
const words = process.argv.slice(2)
const tests = (part) => ({
  command: [bin('vitest'), 'run', ...reporters, ...words],
  options: { env: { ...process.env, KPNG_TESTS: part }, timeout: longestMs },
})
const runPart = (part) => {
  const { command, options } = tests(part)
  step(`tests ${part}`.trim(), () => run(command[0], command.slice(1), options))
}
// Whoever runs the tests gets the machine back as it was: its sysctls, rules, links and mounts.
const before = machineState()
const parts = ['together', 'commands', 'backends', 'conformance']
// All but the first need a machine for themselves. In network namespaces of their own they run at the same time.
const namespace = ownNamespace()
if (words.length > 0) runPart('')
else if (!namespace) for (const part of parts) runPart(part)
else await runBeside(parts.map((part) => ({ part, namespace: part === 'together' ? [] : namespace, ...tests(part) })))
const left = differences(before, machineState())
if (left.length > 0) {
  console.error(`The tests changed this machine:\n  ${left.slice(0, 50).join('\n  ')}`)
  process.exitCode = 1
}
