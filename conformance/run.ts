import { rmSync } from 'node:fs'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KpngError } from '@kpng/api'
import { type Place, type Protocol, whyNoSctp } from '@kpng/linux/testing'
import { addressOf, clusterCidr, ipsOf, ownExternalAddress, secondAddress } from './addresses.js'
import type { Cell } from './cases/case.js'
import { serviceProxyName } from './cases/objects.js'
import { type ApiServerSwitch, relayApiServer } from './feed/api-relay.js'
import type { Feed } from './feed/feed.js'
import { copyKubeconfig } from './feed/kubeconfig.js'
import { kubectlFeed } from './feed/kubectl.js'
import { manifestsFeed } from './feed/manifests.js'
import { LabCgroups, type Node } from './lab/cgroups.js'
import { type Lab, startLab } from './lab/lab.js'
import { type ConformanceOptions, type Settings, settingsOf } from './options.js'
import { PlantedFault } from './planted/laid-over.js'
import { fillPlaceholders } from './proxies.js'
import { htmlText } from './report/html.js'
import { junitText } from './report/junit.js'
import { type ConformanceReport, isFailure, summaryOf, summaryText } from './report/report.js'
import { tableText } from './report/table.js'
import { inOrder } from './runner/judge.js'
import { play, type Stage } from './runner/play.js'
import { titlesText } from './titles.js'

/**
 * Builds the lab, runs the proxy under test in it, measures every cell, and reports. Resolves also when cells are wrong:
 * `report.passed` says so. Rejects when there can be no report: no root, a proxy that does not start, an interruption. Whatever
 * happens, nothing of the lab is left.
 */
export async function runConformance(options: ConformanceOptions): Promise<ConformanceReport> {
  const settings = settingsOf(options)
  const start = performance.now()
  const { signal, release } = options.signal ? { signal: options.signal, release: () => {} } : abortOnSignals()
  try {
    const { results, stability, notes, proxyEnded } = await inLab(settings, signal)
    const ordered = inOrder(results, settings.cases)
    const summary = summaryOf(ordered)
    const report: ConformanceReport = {
      proxy: settings.proxy,
      backend: settings.backend,
      results: ordered,
      summary,
      stability,
      notes,
      durationMs: Math.round(performance.now() - start),
      passed: !results.some(isFailure) && summary.right > 0 && !proxyEnded,
    }
    await publish(report, settings)
    return report
  } finally {
    release()
  }
}

async function inLab(settings: Settings, signal: AbortSignal) {
  const folder = await mkdtemp(join(tmpdir(), 'kpng-conformance-'))
  // It may hold a copy of credentials: it goes however the process ends.
  const removeFolder = () => rmSync(folder, { recursive: true, force: true })
  process.once('exit', removeFolder)
  // From the last to the first: what was started later may need what was started earlier until it ends.
  const closers: (() => unknown)[] = [removeFolder, () => process.off('exit', removeFolder)]
  try {
    const asksSctp = cellsOf(settings).some(({ to }) => to.protocol === 'SCTP')
    const noSctp = asksSctp ? await whyNoSctp() : undefined
    const protocols: Protocol[] = asksSctp && noSctp === undefined ? ['TCP', 'UDP', 'SCTP'] : ['TCP', 'UDP']
    const cgroups = wantsCgroups(settings) ? new LabCgroups() : undefined
    if (cgroups) closers.push(() => cgroups.remove())
    const lab = await startLab(settings.agentCommand, protocols, cgroups)
    closers.push(() => lab.close())
    await serveAtGateway(lab, settings, protocols)
    const fault = settings.fault && (await PlantedFault.plant(lab, settings.fault))
    if (fault) closers.push(() => fault.ended())
    const { feed, apiServer } = await startFeed(lab, settings, folder, closers)
    const asks = (name: string) =>
      [...settings.proxy, ...(settings.specialised ?? [])].some((part) => part.includes(name))
    const wantsCore = settings.core !== undefined && asks('{api}')
    const fill = (command: readonly string[], node: Node = 'node-a') =>
      fillPlaceholders(command, {
        node,
        clusterCidr: ipsOf(clusterCidr).join(','),
        serviceProxyName,
        cgroup: cgroups?.ofNode(node),
        // A file, so that rules cannot come between.
        api: wantsCore ? `unix://${join(folder, 'core.sock')}` : undefined,
        bpffs: join(folder, `bpf-${node}`),
        manifests: undefined,
        kubeconfig: undefined,
        ...feed.placeholders,
      })
    const wantsSpecialised = settings.cases.some((one) => one.specialised)
    const commands = {
      main: fill(settings.proxy),
      onNodeB: fill(settings.proxy, 'node-b'),
      core: wantsCore ? fill(settings.core ?? []) : undefined,
      specialised: wantsSpecialised ? settings.specialised && fill(settings.specialised) : undefined,
    }
    const stage: Stage = { lab, feed, apiServer, commands, settings, noSctp, fault, signal, closers }
    return await Promise.race([play(stage), whenAborted(signal)])
  } finally {
    await closeAll(closers.reverse())
  }
}

/** Whether a proxy attaches programs to a cgroup. */
const wantsCgroups = ({ proxy, specialised = [] }: Settings): boolean =>
  [...proxy, ...specialised].some((part) => part.includes('{cgroup}'))

/** Each of them, whatever becomes of the others; the first failure is told once all have had their turn. */
async function closeAll(closers: readonly (() => unknown)[]): Promise<void> {
  const failures: unknown[] = []
  for (const close of closers) {
    try {
      await close()
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
}

interface StartedFeed {
  readonly feed: Feed
  readonly apiServer: ApiServerSwitch | undefined
}

async function startFeed(
  lab: Lab,
  { feed: how, cases, log }: Settings,
  folder: string,
  closers: (() => unknown)[],
): Promise<StartedFeed> {
  if (how === 'manifests') return { feed: await manifestsFeed(folder), apiServer: undefined }
  const copy = await copyKubeconfig(how.kubeconfig, folder)
  const nodes: Node[] = cases.some(({ onBothNodes }) => onBothNodes) ? ['node-a', 'node-b'] : ['node-a']
  const relay = await relayApiServer(lab, copy, folder, nodes)
  closers.push(() => relay.close())
  const feed = kubectlFeed(how.kubeconfig, { kubeconfig: copy.path }, log)
  closers.push(() => feed.close())
  return { feed, apiServer: relay }
}

const cellsOf = ({ cases }: Settings): Cell[] => cases.flatMap(({ steps }) => steps.flatMap(({ cells }) => [...cells]))

/** The gateway answers wherever a cell asks beyond the node, so that what gets past the proxy is seen. */
async function serveAtGateway(lab: Lab, settings: Settings, protocols: readonly Protocol[]): Promise<void> {
  const own = [...Object.values(addressOf), secondAddress, ownExternalAddress, { IPv4: '127.0.0.1', IPv6: '::1' }]
  const notThere = new Set(own.flatMap((address) => Object.values(address)))
  const places = new Map<string, Place>()
  for (const { to } of cellsOf(settings)) {
    if (!protocols.includes(to.protocol) || notThere.has(to.ip)) continue
    places.set(`${to.protocol} ${to.ip} ${to.port}`, { protocol: to.protocol, ip: to.ip, port: to.port })
  }
  await lab.agents.gateway.call('serve', [...places.values()])
}

/** A signal that SIGINT and SIGTERM abort, until it is released. */
function abortOnSignals(): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController()
  const abort = () => controller.abort()
  const names = ['SIGINT', 'SIGTERM'] as const
  for (const name of names) process.on(name, abort)
  return {
    signal: controller.signal,
    release: () => {
      for (const name of names) process.off(name, abort)
    },
  }
}

function whenAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const stop = () => reject(new KpngError('unavailable', 'The run was interrupted; the lab is removed.'))
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
}

async function publish(report: ConformanceReport, settings: Settings): Promise<void> {
  const { json, junit, html, log, showAll = false, titles = false } = settings
  const shown = report.results.filter(
    ({ status }) => showAll || ['wrong', 'unstable', 'unexpectedly-right'].includes(status),
  )
  if (shown.length > 0) log(`${tableText(shown)}\n`)
  if (titles) log(`${titlesText(report.results)}\n`)
  for (const note of report.notes) log(note)
  log(`${summaryText(report.summary)}. ${(report.durationMs / 1000).toFixed(1)} s.`)
  if (json !== undefined) await writeFile(json, `${JSON.stringify(report, null, 2)}\n`)
  if (junit !== undefined) await writeFile(junit, junitText(report))
  if (html !== undefined) await writeFile(html, htmlText(report))
}
