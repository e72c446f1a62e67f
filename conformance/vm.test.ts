import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mispredicted } from '../diagnose/testing/kit-prediction.js'
import { bundle, bundleCode, bundledAgent, programPath } from '../linux/testing/bundle.js'
import { runInVm, whyNoVm } from '../linux/testing/vm/vm.js'
import type { ConformanceReport } from './report/report.js'
import { tableText } from './report/table.js'

// What most kernels cannot run, in a VM whose kernel can: one boot for all of it. Without KVM everything takes 10 to 20 times as long there,
// so it is a selection.

/** The kit, one backend after the other. A backend that needs this kernel is one line more. */
const runs: readonly { backend: string; flags: readonly string[]; only: readonly string[] }[] = [
  { backend: 'nft', flags: [], only: ['sctp', 'sctp-local'] },
  { backend: 'iptables', flags: ['--iptables-flavour', 'nft'], only: ['sctp-local'] },
  { backend: 'ipvs', flags: [], only: ['external-local', 'endpoint-moved'] },
]

/**
 * With KPNG_CONNECTIONS, a number: packets through IPVS, and that number of connections each during restarts and during a switch to the nft
 * backend and back. It takes minutes.
 */
const connections = process.env.KPNG_CONNECTIONS

/** Only a VM that hangs takes so long. */
const limitMs = connections === undefined ? 1_800_000 : 3_600_000

/**
 * Runs the kit for each backend and prints the reports; then other programs, of which the first runs beside the kit. Patient: a slow proxy is not a wrong one.
 */
const code = `
  import { execFile } from 'node:child_process'
  import { proxyNamed } from './proxies.js'
  import { runConformance } from './run.js'
  const [kpng, agentCommand, runs, programs] = process.argv.slice(2).map((text) => JSON.parse(text))
  const printed = ([program, ...args]) => new Promise((resolve) =>
    execFile(program, args, { maxBuffer: Infinity }, (error, output, errors) =>
      resolve(output + errors + 'exit code: ' + (error ? error.code : 0))))
  const first = printed(programs[0])
  for (const { backend, flags, only } of runs) {
    const report = await runConformance({
      proxy: [...proxyNamed(backend, kpng, 'manifests'), ...flags],
      feed: 'manifests',
      backend,
      only,
      agentCommand,
      programTimeoutMs: 120_000,
      settleMs: 20_000,
      connections: 20,
      log: console.log,
    })
    console.log('report: ' + JSON.stringify(report))
  }
  console.log(await first)
  for (const program of programs.slice(1)) console.log(await printed(program))`

/** Of a line that a program has printed about a check. */
const isFailure = (line: string) => !line.startsWith('ok ') && line !== 'exit code: 0'

const why = whyNoVm('the kit and IPVS in a VM')

describe.skipIf(why !== undefined)('in a VM with SCTP and IPVS', () => {
  const node = process.execPath
  const bundled: string[] = []
  let reports: ConformanceReport[]
  let checks: string[]

  const path = (name: string) => {
    const program = programPath(name)
    bundled.push(program)
    return program
  }
  const ofBackend = async (name: string) => {
    const program = path('checks')
    await bundle(new URL(`../backends/${name}.ts`, import.meta.url), program)
    return program
  }

  beforeAll(async () => {
    const kit = path('kit')
    await bundleCode(code, new URL(import.meta.url), kit)
    // As one file with V8's code cache: in the VM, it starts in less than half of the time.
    const folder = mkdtempSync(join(tmpdir(), 'kpng-vm-test-'))
    bundled.push(folder)
    execFileSync(node, [join(import.meta.dirname, '..', 'scripts', 'package.js'), '--bundle', folder])
    const kpng = [node, join(folder, 'kpng.cjs')]
    const agent = await bundledAgent()
    const programs = [['unshare', '--net', node, await ofBackend('ipvs/testing/kernel-check')]]
    if (connections !== undefined) {
      const traffic = await ofBackend('ipvs/testing/traffic-check')
      programs.push([node, traffic, agent[1] ?? '', await ofBackend('ipvs/testing/proxy'), connections])
    }
    const args = [kpng, agent, runs, programs].map((value) => JSON.stringify(value))
    const { output } = await runInVm([node, kit, ...args], { limitMs })
    const lines = output.replaceAll('\r', '').split('\n')
    const found = lines.filter((line) => line.startsWith('report: '))
    checks = lines.filter((line) => /^(not )?ok |^exit code: /.test(line))
    if (checks.filter((line) => line.startsWith('exit code: ')).length < programs.length)
      throw new Error(`The programs did not finish:\n${output}`)
    if (connections !== undefined || checks.some(isFailure)) console.log(output)
    reports = found.map((line) => JSON.parse(line.slice('report: '.length)))
  }, limitMs + 60_000)
  afterAll(() => {
    for (const path of bundled) rmSync(path, { recursive: true, force: true })
  })

  test.each(runs.map(({ backend, flags }, index) => [[backend, ...flags].join(' '), index] as const))(
    'the kit finds nothing wrong in %s, and what explain says',
    async (_, index) => {
      const report = reports[index] as ConformanceReport
      const { results, summary, notes } = report
      const wrong = results.filter(({ status }) => status === 'wrong' || status === 'unexpectedly-right')
      expect(wrong.length === 0 ? '' : [tableText(wrong), ...notes].join('\n')).toBe('')
      expect(await mispredicted(report)).toEqual([])
      expect(summary.skipped).toBe(0)
      expect(summary.right).toBeGreaterThan(0)
    },
  )

  test('the IPVS backend restarts, drains, repairs and cleans up', () => {
    expect(checks.filter(isFailure)).toEqual([])
    expect(checks.length).toBeGreaterThan(1)
  })
})
