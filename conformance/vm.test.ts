import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import '../cli/testing/compiled.js'
import { bundleCode, bundledAgent, programPath } from '../linux/testing/bundle.js'
import { runInVm, whyNoVm } from '../linux/testing/vm/vm.js'
import type { ConformanceReport } from './report/report.js'
import { tableText } from './report/table.js'

// Cells that most kernels cannot run, in a VM whose kernel can: one boot for all backends. Without KVM everything takes 10 to 20
// times as long there, so it is a selection.

/** What is run, one after the other. A backend that needs this kernel is one line more. */
const runs: readonly { backend: string; flags: readonly string[]; only: readonly string[] }[] = [
  { backend: 'nft', flags: [], only: ['sctp', 'sctp-*'] },
  { backend: 'iptables', flags: ['--iptables-flavour', 'nft'], only: ['sctp', 'sctp-local'] },
  { backend: 'ipvs', flags: [], only: ['cluster-ip', 'external-local', 'endpoint-moved'] },
]

/** Only a VM that hangs takes so long. */
const limitMs = 540_000

/** Runs the kit for each backend and prints the reports. Patient: a slow proxy is not a wrong one. */
const code = `
  import { proxyNamed } from './proxies.js'
  import { runConformance } from './run.js'
  const [kpng, agentCommand, runs] = process.argv.slice(2).map((text) => JSON.parse(text))
  for (const { backend, flags, only } of runs) {
    const report = await runConformance({
      proxy: [...proxyNamed(backend, kpng, 'manifests'), ...flags],
      feed: 'manifests',
      backend,
      only,
      agentCommand,
      programTimeoutMs: 120_000,
      settleMs: 20_000,
      log: console.log,
    })
    console.log('report: ' + JSON.stringify(report))
  }`

const why = whyNoVm('the kit in a VM')

describe.skipIf(why !== undefined)('the kit, in a VM with SCTP', () => {
  const program = programPath('kit')
  let reports: ConformanceReport[]
  beforeAll(async () => {
    await bundleCode(code, new URL(import.meta.url), program)
    const kpng = [process.execPath, fileURLToPath(new URL('../cli/bin/kpng.js', import.meta.url))]
    const args = [kpng, await bundledAgent(), runs].map((value) => JSON.stringify(value))
    const { output } = await runInVm([process.execPath, program, ...args], { limitMs })
    const found = output.split('\n').filter((line) => line.startsWith('report: '))
    if (found.length < runs.length) throw new Error(`The kit did not finish:\n${output}`)
    reports = found.map((line) => JSON.parse(line.slice('report: '.length)))
  }, limitMs + 60_000)
  afterAll(() => rmSync(program, { force: true }))

  test.each(runs.map(({ backend }, index) => [backend, index] as const))('finds nothing wrong in %s', (_, index) => {
    const { results, summary, notes } = reports[index] as ConformanceReport
    const wrong = results.filter(({ status }) => status === 'wrong' || status === 'unexpectedly-right')
    expect(wrong.length === 0 ? '' : [tableText(wrong), ...notes].join('\n')).toBe('')
    expect(summary.skipped).toBe(0)
    expect(summary.right).toBeGreaterThan(0)
  })
})
