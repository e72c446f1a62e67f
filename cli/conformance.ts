import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { type Family, KpngError } from '@kpng/api'
import { type Context, type Flags, given, listFlag, textFlag } from './context.js'
import { onUnreadOutput } from './exit.js'
import { checkOutputFile } from './files.js'
import { selfCommand } from './self.js'

/** Tests a proxy. The exit code says whether it passed. */
export async function proveProxy(flags: Flags, { signal, stop, verbosity }: Context): Promise<void> {
  // The lab must be removed, and a run without a verdict has not passed.
  onUnreadOutput(() => stop())
  if (flags.chaos !== undefined) return causeChaos(flags, signal)
  if (flags.wholeMachine)
    throw new KpngError('usage', '--whole-machine is for --chaos: give both, such as --chaos 5m --whole-machine.')
  if (flags.seed !== undefined)
    throw new KpngError('usage', '--seed is for --chaos: give both, such as --chaos 5m --seed 1.')
  const { coreNamed, runConformance, runPlanted } = await import('@kpng/conformance')
  const { milliseconds } = await import('@kpng/client')
  const families = listFlag(flags, 'families')
  const json = textFlag(flags, 'json')
  const junit = textFlag(flags, 'junit')
  if (json !== undefined) await checkOutputFile('--json', json)
  if (junit !== undefined) await checkOutputFile('--junit', junit)
  const html = textFlag(flags, 'html')
  if (html !== undefined) await checkOutputFile('--html', html)
  const { feed, close } = await feedOf(flags)
  const options = {
    proxy: await proxyCommand(flags, feed),
    ...given('specialised', await specialisedCommand(flags, feed)),
    core: coreNamed(selfCommand(), feed),
    feed,
    only: (flags.only as string[] | undefined) ?? [],
    settleMs: milliseconds('--settle', textFlag(flags, 'settle') ?? '3s'),
    programTimeoutMs: milliseconds('--program-timeout', textFlag(flags, 'programTimeout') ?? '15s'),
    ...(families.length > 0 ? { families: families.map(familyOf) } : {}),
    ...given('backend', textFlag(flags, 'backend')),
    agentCommand: [...selfCommand(), 'conformance-agent'],
    signal,
    log: console.log,
  }
  if (flags.planted !== undefined) {
    const faults = flags.planted === true ? [] : listFlag(flags, 'planted')
    if (await runPlanted({ ...options, faults, checkout: checkoutFor(flags) }).finally(close)) return
    throw new KpngError('refused', 'The kit did not find every fault.')
  }
  const report = await runConformance({
    ...options,
    ...given('json', json),
    ...given('junit', junit),
    ...given('html', html),
    showAll: verbosity.get() > 0,
    titles: flags.titles === true,
  }).finally(close)
  if (!report.passed) throw new KpngError('refused', 'The proxy did not pass. The table above shows the wrong cells.')
}

/** The checkout that this program runs from, if faults can be planted in its code. They are faults of the nftables backend. */
function checkoutFor(flags: Flags): string | undefined {
  if (textFlag(flags, 'proxy') !== undefined || textFlag(flags, 'backend') !== 'nft') return undefined
  const checkout = resolve(dirname(selfCommand()[1] ?? ''), '..', '..')
  return existsSync(join(checkout, 'conformance', 'planted', 'in-code.json')) ? checkout : undefined
}

/** Lets things go wrong around a proxy. The exit code says whether clients noticed. */
async function causeChaos(flags: Flags, signal: AbortSignal): Promise<void> {
  const { chaosProxyNamed, runChaos, splitCommand } = await import('@kpng/conformance')
  const { milliseconds } = await import('@kpng/client')
  const command = textFlag(flags, 'proxy')
  const backend = textFlag(flags, 'backend')
  if (command === undefined && backend === undefined) {
    throw new KpngError('usage', 'No proxy was named. Give --backend nft, or a command with --proxy.')
  }
  const durationMs = milliseconds('--chaos', textFlag(flags, 'chaos') ?? '')
  if (durationMs === 0) throw new KpngError('usage', '--chaos 0s lets nothing go wrong. Give a duration such as 5m.')
  const seed = numberOf(textFlag(flags, 'seed') ?? String(Math.floor(Math.random() * 2 ** 32)))
  const families = listFlag(flags, 'families')
  console.log(`Chaos with the seed ${seed}. --seed ${seed} makes the same faults again.`)
  const report = await runChaos({
    proxy: command === undefined ? chaosProxyNamed(backend ?? '', [...selfCommand()]) : splitCommand(command),
    durationMs,
    seed,
    isProcess: backend?.startsWith('userspace') ?? false,
    wholeMachine: flags.wholeMachine === true,
    ...(families.length > 0 ? { families: families.map(familyOf) } : {}),
    agentCommand: [...selfCommand(), 'conformance-agent'],
    signal,
    log: console.log,
  })
  for (const violation of report.violations) console.log(violation)
  console.log(`${report.faults} faults, ${report.requests} requests, ${report.violations.length} violations.`)
  if (report.violations.length > 0) {
    throw new KpngError('refused', `The proxy did not pass. --seed ${seed} makes the same faults again.`)
  }
}

function numberOf(text: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text)
  throw new KpngError('usage', `--seed takes a whole number, not "${text}".`)
}

type Feed = 'manifests' | { readonly kubeconfig: string }

/** The API server of `--kubeconfig`. Without one: manifests, or the playground for a proxy that reads only an API server. */
async function feedOf(flags: Flags): Promise<{ feed: Feed; close?: () => Promise<void> }> {
  const kubeconfig = textFlag(flags, 'kubeconfig')
  if (kubeconfig !== undefined) return { feed: { kubeconfig } }
  const proxy = textFlag(flags, 'proxy')
  const isKubeProxy = textFlag(flags, 'backend')?.startsWith('kube-proxy-')
  if (proxy === undefined ? !isKubeProxy : !proxy.includes('{kubeconfig}')) return { feed: 'manifests' }
  const { startPlayground } = await import('@kpng/playground')
  const { serviceCidr } = await import('@kpng/conformance')
  const serviceCidrs = Object.values(serviceCidr)
  const playground = await startPlayground({ nodeNames: [], runPods: false, serviceCidrs })
  return { feed: { kubeconfig: playground.kubeconfigPath }, close: () => playground.close() }
}

async function proxyCommand(flags: Flags, feed: Feed): Promise<string[]> {
  const { proxyNamed, splitCommand } = await import('@kpng/conformance')
  const command = textFlag(flags, 'proxy')
  if (command !== undefined) return splitCommand(command)
  const backend = textFlag(flags, 'backend')
  if (backend !== undefined) return proxyNamed(backend, [...selfCommand()], feed)
  throw new KpngError(
    'usage',
    "No proxy was named. Give --backend nft, or a command: --proxy 'kpng file -i {manifests} to-local --node-name {node} to-nft'.",
  )
}

/** That of `--specialised-proxy`, else kpng's own if kpng's own proxy is judged. */
async function specialisedCommand(flags: Flags, feed: Feed): Promise<string[] | undefined> {
  const { specialisedProxyNamed, splitCommand } = await import('@kpng/conformance')
  const command = textFlag(flags, 'specialisedProxy')
  if (command !== undefined) return splitCommand(command)
  const backend = textFlag(flags, 'backend')
  if (backend === undefined || textFlag(flags, 'proxy') !== undefined) return undefined
  return specialisedProxyNamed(backend, [...selfCommand()], feed)
}

function familyOf(text: string): Family {
  if (text === 'v4') return 'IPv4'
  if (text === 'v6') return 'IPv6'
  throw new KpngError('usage', `--families takes v4, v6 or both, not "${text}".`)
}
