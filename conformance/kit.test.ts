import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cgroupTree } from '@kpng/linux/bpf'
import { makerOf, whyNoLab } from '@kpng/linux/testing'
import { startPlayground } from '@kpng/playground'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import '../cli/testing/compiled.js'
import { mispredicted } from '../diagnose/testing/kit-prediction.js'
import { cases } from './cases/index.js'
import type { ConformanceOptions } from './options.js'
import { runPlanted } from './planted/planted.js'
import { coreNamed, proxyNamed, specialisedProxyNamed } from './proxies.js'
import type { ConformanceReport } from './report/report.js'
import { tableText } from './report/table.js'
import { runConformance } from './run.js'

// The kit against real proxies, with real packets. The command is the built one, as people run it.

const kpng = [process.execPath, fileURLToPath(new URL('../cli/bin/kpng.js', import.meta.url))]
const whyNot = (await whyNoLab()) ?? whyNoProxy()
if (whyNot !== undefined) console.warn(`The kit is not tried on any proxy: ${whyNot}`)

function whyNoProxy(): string | undefined {
  if (spawnSync('nft', ['--version']).status !== 0) return 'there is no nft; it comes with the package nftables'
  return undefined
}

const knows = (backend: string) =>
  whyNot === undefined &&
  spawnSync(kpng[0] as string, [...kpng.slice(1), 'file', 'to-local', backend, '--help']).status === 0
const whyNoNft = whyNot ?? (knows('to-nft') ? undefined : 'this kpng has no to-nft')
const whyNoIptables =
  whyNot ?? (knows('to-iptables') ? await whyNoLab('iptables-nft', 'iptables-legacy') : 'this kpng has no to-iptables')
if (whyNoIptables !== undefined) console.warn(`The kit is not tried on iptables: ${whyNoIptables}`)
const whyNoEbpf = whyNoNft ?? (cgroupTree() === undefined ? 'no cgroup tree of version 2 is mounted' : undefined)
if (whyNot === undefined && whyNoEbpf !== undefined) console.warn(`The kit is not tried on ebpf: ${whyNoEbpf}`)
if (whyNot === undefined && whyNoNft !== undefined) console.warn(`The kit is not tried on nft: ${whyNoNft}`)

/** Only a run that hangs takes so long: how long it may take depends on the machine. */
const fullRunMs = 600_000
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kpng-kit-'))
})
afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
  const left = (await readdir('/run/netns').catch(() => [])).filter((name) => makerOf(name) === process.pid)
  expect(left).toEqual([])
})

/** A proxy may take long to start on a busy machine. */
const run = (options: Omit<ConformanceOptions, 'log'>): Promise<ConformanceReport> =>
  runConformance({ log: () => {}, programTimeoutMs: 120_000, ...options })

/** The cells that are wrong or unstable, as the table shows them. */
function unexpected({ results, notes }: ConformanceReport): string {
  const wrong = results.filter(({ status }) => status === 'wrong' || status === 'unstable')
  return wrong.length === 0 ? '' : [tableText(wrong), ...notes].join('\n')
}

const skipReasons = ({ results }: ConformanceReport): string[] => [
  ...new Set(results.flatMap(({ status, reason = '' }) => (status === 'skipped' ? [reason] : []))),
]

/** What is measured with an API server, or on other backends. */
const elsewhere = [
  'objects come from manifests, not from an API server',
  'the proxy has no --iptables-localhost-nodeports=false',
]
const isElsewhere = (reason: string): boolean => reason.includes('SCTP') || elsewhere.includes(reason)

describe.skipIf(whyNot !== undefined)('the kit', () => {
  it.skipIf(whyNoNft !== undefined)('finds kpng nft right in every cell', { timeout: fullRunMs }, async () => {
    const junit = join(folder, 'nft.xml')
    const json = join(folder, 'nft.json')
    const report = await run({
      proxy: proxyNamed('nft', kpng, 'manifests'),
      specialised: specialisedProxyNamed('nft', kpng, 'manifests'),
      feed: 'manifests',
      backend: 'nft',
      junit,
      json,
    })
    expect(unexpected(report)).toBe('')
    expect(await mispredicted(report)).toEqual([])
    expect(report.summary.right).toBeGreaterThan(1000)
    expect(report.summary.deviates).toBe(0)
    expect(skipReasons(report)).toEqual(expect.arrayContaining(elsewhere))
    expect(skipReasons(report).filter((reason) => !isElsewhere(reason))).toEqual([])
    expect(JSON.parse(await readFile(json, 'utf8'))).toEqual(JSON.parse(JSON.stringify(report)))
    expect(await readFile(junit, 'utf8')).toContain(`tests="${report.summary.cells}"`)
  })

  it.skipIf(whyNoIptables !== undefined).each(['nft', 'legacy'])(
    'finds kpng iptables right but for its named deviations: %s',
    { timeout: fullRunMs },
    async (flavour) => {
      const chosen = ['--iptables-flavour', flavour]
      const report = await run({
        proxy: [...proxyNamed('iptables', kpng, 'manifests'), ...chosen],
        specialised: [...(specialisedProxyNamed('iptables', kpng, 'manifests') ?? []), ...chosen],
        feed: 'manifests',
        backend: 'iptables',
      })
      expect(unexpected(report)).toBe('')
      expect(await mispredicted(report)).toEqual([])
      expect(report.summary.right).toBeGreaterThan(1000)
      expect(report.summary['unexpectedly-right']).toBe(0)
      expect(skipReasons(report).filter((reason) => !isElsewhere(reason))).toEqual([])
    },
  )

  it.skipIf(whyNoEbpf !== undefined)(
    'finds kpng ebpf right but for the addresses that endpoints see',
    { timeout: fullRunMs },
    async () => {
      const report = await run({
        proxy: proxyNamed('ebpf', kpng, 'manifests'),
        specialised: specialisedProxyNamed('ebpf', kpng, 'manifests'),
        feed: 'manifests',
        backend: 'ebpf',
        // What sockets of the node ask for; nftables serves the rest, as above.
        only: [
          ...['cluster-ip*', 'hairpin', 'node-port', 'external-*', 'load-balancer-vip', 'affinity', 'endpoint-moved'],
          ...['specialised-headless', 'specialised-slices-by-hand', 'specialised-affinity'],
        ],
      })
      expect(unexpected(report)).toBe('')
      expect(report.summary.right).toBeGreaterThan(200)
      // If eBPF served nothing, nftables would serve these cells as everywhere else.
      expect(report.summary['unexpectedly-right']).toBe(0)
      expect(report.summary.deviates).toBe(22)
      expect(skipReasons(report).filter((reason) => !reason.includes('SCTP'))).toEqual([])
      const left = readdirSync(cgroupTree()?.path ?? '/').filter((name) => name.startsWith(`kpng-lab-${process.pid}-`))
      expect(left).toEqual([])
    },
  )

  it('finds kpng userspace right but for its named deviations', { timeout: fullRunMs }, async () => {
    const report = await run({
      proxy: proxyNamed('userspace', kpng, 'manifests'),
      feed: 'manifests',
      backend: 'userspace',
    })
    expect(unexpected(report)).toBe('')
    expect(await mispredicted(report)).toEqual([])
    expect(report.summary.deviates).toBeGreaterThan(100)
    expect(report.summary['unexpectedly-right']).toBe(0)
    expect(skipReasons(report)).toContain('no specialised proxy was given')
  })

  it('finds nearly nothing right in a proxy that does nothing', { timeout: fullRunMs }, async () => {
    // Packets between pods need no proxy, and a program that knows no flags ends when it gets some.
    const only = cases
      .filter(({ id, steps, flags }) => steps.length === 1 && id !== 'pod-to-pod' && flags === undefined)
      .map(({ id }) => id)
    const report = await run({
      proxy: ['sleep', '1000'],
      specialised: ['sleep', '1001'],
      // So that the cases of kpng's own extensions are tried too.
      backend: 'nft',
      feed: 'manifests',
      only,
      programTimeoutMs: 500,
      families: ['IPv4'],
    })
    expect(report.passed).toBe(false)
    const positive = report.results.filter(
      ({ expect: { outcome }, status }) => outcome === 'reached' && status !== 'skipped',
    )
    expect(positive.length).toBeGreaterThan(90)
    expect(positive.filter(({ status }) => status !== 'wrong')).toEqual([])
    const drops = report.results.filter(
      ({ expect: { outcome }, status }) => outcome === 'dropped' && status !== 'skipped',
    )
    // A node port that nobody serves is refused by the node itself; what is routed on is seen at the gateway.
    expect(drops.filter(({ status }) => status !== 'wrong')).toEqual([])
    expect(report.notes.join('\n')).toContain('never served the canary')
  })

  it.skipIf(whyNoNft !== undefined)('feeds a proxy through an API server', { timeout: fullRunMs }, async () => {
    const playground = await startPlayground({
      nodeNames: [],
      runPods: false,
      serviceCidrs: ['10.96.0.0/16', 'fd00:10:96::/112'],
    })
    try {
      const feed = { kubeconfig: playground.kubeconfigPath }
      const only = [
        ...['cluster-ip', 'load-balancer-*', 'service-gone', 'zone-hints', 'bad-objects'],
        ...['specialised-headless', 'specialised-slices-by-hand', 'specialised-handed-over', 'headless-label'],
        ...['api-server-restarted', 'two-nodes'],
      ]
      const specialised = specialisedProxyNamed('nft', kpng, feed)
      const report = await run({ proxy: proxyNamed('nft', kpng, feed), specialised, feed, only })
      expect(unexpected(report)).toBe('')
      expect(report.summary.right).toBeGreaterThan(80)
      expect(
        report.results.filter(({ status }) => status === 'skipped').every((one) => one.case === 'bad-objects'),
      ).toBe(true)
    } finally {
      await playground.close()
    }
  })

  it.skipIf(whyNoNft !== undefined)(
    'finds a proxy wrong that dies, and says in which round and what it said last',
    { timeout: fullRunMs },
    async () => {
      // The kit's own Service has port 1001 in the second round.
      const script = `"$@" & until grep -q 'port: 1001' "$5/objects.yaml"; do sleep 0.1; done; kill -9 $!; echo last words; exit 3`
      const [node = '', kpngPath = '', ...words] = proxyNamed('nft', kpng, 'manifests')
      // $5 is the folder of manifests.
      expect(words.slice(0, 3)).toEqual(['file', '-i', '{manifests}'])
      const proxy = ['sh', '-c', script, 'sh', node, kpngPath, ...words]
      const only = ['endpoints-come-and-go', 'cluster-ip']
      const report = await run({ proxy, feed: 'manifests', backend: 'nft', only, families: ['IPv4'] })
      expect(report.passed).toBe(false)
      expect(report.summary.wrong).toBeGreaterThan(0)
      expect(report.notes.join('\n')).toMatch(/A proxy ended in round [23] of \d/)
      expect(report.notes.join('\n')).toMatch(/ended with code 3 during the run. It said last:.*last words/s)
    },
  )

  it.skipIf(whyNoNft !== undefined)(
    'finds faults that are laid over a right proxy',
    { timeout: fullRunMs },
    async () => {
      const lines: string[] = []
      const all = await runPlanted({
        ...{ proxy: proxyNamed('nft', kpng, 'manifests'), feed: 'manifests', backend: 'nft' },
        only: ['external-cluster', 'load-balancer-vip', 'endpoints-come-and-go'],
        programTimeoutMs: 120_000,
        faults: ['resets', 'wrong-*'],
        log: (line) => lines.push(line),
      })
      expect(lines).toEqual([
        expect.stringMatching(/^✓ resets: .*: (external-cluster|load-balancer-vip)\//),
        expect.stringMatching(/^✓ wrong-after-changes: .*\//),
        '2 of 2 faults were found.',
      ])
      expect(all).toBe(true)
    },
  )

  it.skipIf(whyNoNft !== undefined)('proves a proxy that connects to a core', { timeout: fullRunMs }, async () => {
    const report = await run({
      proxy: [
        ...kpng,
        'local',
        '--api={api}',
        '--node-name={node}',
        'to-nft',
        '--cluster-cidr={clusterCidr}',
        '--agent-socket=',
      ],
      core: coreNamed(kpng, 'manifests'),
      feed: 'manifests',
      backend: 'nft',
      only: ['cluster-ip', 'endpoints-come-and-go'],
    })
    expect(unexpected(report)).toBe('')
    expect(report.passed).toBe(true)
    await expect(run({ proxy: ['p', '{api}'], feed: 'manifests' })).rejects.toThrow(/has \{api\}/)
  })

  it('says why a proxy that ends at once is not judged', async () => {
    const proxy = [process.execPath, '-e', 'console.error("no such flag"); process.exit(2)']
    await expect(run({ proxy, feed: 'manifests' })).rejects.toThrow(/ended with code 2 .*no such flag/s)
  })

  it('leaves nothing when it is interrupted', async () => {
    const index = fileURLToPath(new URL('./dist/index.js', import.meta.url))
    // Its argument is how it is found.
    const proxy = ['sleep', `98${process.pid}`]
    const script = `import { runConformance } from ${JSON.stringify(index)}
      runConformance({ proxy: ${JSON.stringify(proxy)}, feed: 'manifests', programTimeoutMs: 600000, log() {} })
        .catch(({ message }) => { process.exitCode = message.includes('interrupted') ? 7 : 8 })`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    const namespaces = async () =>
      (await readdir('/run/netns').catch(() => [])).filter((name) => makerOf(name) === child.pid)
    const isProxyRunning = () =>
      spawnSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).stdout.split('\n').includes(proxy.join(' '))
    while (!isProxyRunning()) await new Promise((resolve) => setTimeout(resolve, 50))
    expect((await namespaces()).length).toBeGreaterThan(0)
    child.kill('SIGINT')
    expect(await once(child, 'close')).toEqual([7, null])
    expect(await namespaces()).toEqual([])
    expect(isProxyRunning()).toBe(false)
  })
})
