import { KpngError, type Log, messageOf } from '@kpng/api'
import type { Backend } from '@kpng/client'
import { type Context, type Flags, given, textFlag } from './context.js'

/** HNS does not know whose load balancers are whose: those of kube-proxy would go too, so it is cleaned only by name. */
const winkernel = 'winkernel'

/** Everything that kpng may have left on this machine, by backend. */
async function backends({ log }: Context, flags: Flags): Promise<Map<string, Backend>> {
  const { nftBackend } = await import('@kpng/backend-nft')
  const { iptablesBackend } = await import('@kpng/backend-iptables')
  const { ipvsBackend } = await import('@kpng/backend-ipvs')
  const { ebpfBackend } = await import('@kpng/backend-ebpf')
  const { defaultStateFile, iptablesCapture, netshCapture, nftCapture, userspaceBackend } = await import(
    '@kpng/backend-userspace'
  )
  if (process.platform === 'win32') {
    const capture = netshCapture({ log, stateFile: textFlag(flags, 'stateFile') ?? defaultStateFile() })
    const { winkernelBackend } = await import('@kpng/backend-winkernel')
    return new Map<string, Backend>([
      ['winuserspace', userspaceBackend({ log, capture })],
      [winkernel, winkernelBackend({ log })],
    ])
  }
  return new Map<string, Backend>([
    // Its cleanup removes the tables of nftables too.
    ['ebpf', ebpfBackend({ log, ...given('bpffs', textFlag(flags, 'bpffs')) })],
    ['nft', nftBackend({ log })],
    ['iptables', iptablesBackend({ log })],
    ['ipvs', ipvsBackend({ log })],
    ['userspacelin', userspaceBackend({ log, capture: nftCapture({ log }) })],
    ['userspacelin-iptables', userspaceBackend({ log, capture: iptablesCapture({ log }) })],
  ])
}

/**
 * Removes what kpng's backends left: their own tables and chains, and nothing that belongs to others. With `--kube-proxy` it removes what
 * kube-proxy left; kpng's rules are in use then and stay, except those of `--backend`.
 */
export async function cleanUp(flags: Flags, context: Context): Promise<void> {
  const failed: string[] = []
  const own = textFlag(flags, 'backend') !== undefined || !flags.kubeProxy
  if (flags.dryRun && own) {
    throw new KpngError('usage', '--dry-run works only with --kube-proxy, and without --backend.')
  }
  const chosen = own ? await chosenBackends(flags, context) : new Map<string, Backend>()
  if (flags.kubeProxy) {
    if (!flags.force) await refuseWhileKubeProxyRuns(Boolean(flags.dryRun), context.log)
    await cleanUpAfterKubeProxy(flags, context).catch((error) => failed.push(`kube-proxy: ${messageOf(error)}`))
  }
  // Before the rules: while loopback addresses are routed, a rule must keep other machines out. The other backends change no sysctls.
  if (['nft', 'iptables', 'ipvs', 'ebpf'].some((name) => chosen.has(name)) && !(await isUsed(chosen, context)))
    failed.push(...(await (await import('@kpng/node')).restoreSysctls(context)))
  failed.push(...(await cleanUpBackends(chosen, context)))
  if (failed.length > 0) throw new KpngError('unavailable', `Not everything could be removed. ${failed.join(' ')}`)
}

/** Whether a kpng with another backend runs on this node, so that the sysctls must stay. */
async function isUsed(chosen: ReadonlyMap<string, Backend>, { log }: Context): Promise<boolean> {
  const { readProcesses } = await import('@kpng/node/doctor')
  const user = (await readProcesses()).find(
    ({ program, backend = '' }) => program === 'kpng' && !chosen.has(backend.replace('to-', '')),
  )
  if (user) log.info('Left the kernel settings: another kpng uses them', { pid: user.pid, backend: user.backend })
  return user !== undefined
}

/**
 * Cleans up after each backend and returns what failed. A backend whose program is not installed cannot be cleaned from here: that is a
 * failure only if no backend has its program.
 */
async function cleanUpBackends(chosen: ReadonlyMap<string, Backend>, { log }: Context): Promise<string[]> {
  const { isMissingProgram } = await import('@kpng/linux')
  const failed: string[] = []
  const missing: string[] = []
  for (const [name, backend] of chosen) {
    try {
      await backend.cleanup()
      log.info('Cleaned up', { backend: name })
    } catch (error) {
      const sentences = isMissingProgram(error) ? missing : failed
      sentences.push(`${name}: ${messageOf(error)}`)
      if (sentences === missing)
        log.info('Skipped: its program is not installed', { backend: name, why: messageOf(error) })
    }
  }
  return missing.length === chosen.size ? missing : failed
}

async function cleanUpAfterKubeProxy(flags: Flags, { log }: Context): Promise<void> {
  if (process.platform !== 'linux') {
    throw new KpngError('unsupported', '--kube-proxy works on Linux only. Run `kube-proxy --cleanup` here.')
  }
  const { removeKubeProxyLeftovers } = await import('@kpng/node/kube-proxy-leftovers')
  await removeKubeProxyLeftovers({ log, print: flags.dryRun ? (text) => console.log(text) : undefined })
}

/** Without its rules, a node on which kube-proxy serves has no Services until kube-proxy syncs everything again. */
async function refuseWhileKubeProxyRuns(isDryRun: boolean, log: Log): Promise<void> {
  if (process.platform !== 'linux') return
  const { whyKubeProxyMayRun } = await import('@kpng/node/kube-proxy-running')
  const why = await whyKubeProxyMayRun()
  if (why === undefined) return
  if (!isDryRun) {
    throw new KpngError(
      'unavailable',
      `${why} Its rules are in use, so none were removed. Stop kube-proxy first, or give --force.`,
    )
  }
  log.warn(`${why} Without --dry-run, nothing would be removed`)
}

/** All backends, or the one that `--backend` names. */
async function chosenBackends(flags: Flags, context: Context): Promise<Map<string, Backend>> {
  const only = textFlag(flags, 'backend')
  const all = await backends(context, flags)
  if (only !== undefined && !all.has(only)) {
    throw new KpngError('usage', `--backend is "${only}". Give one of ${[...all.keys()].join(', ')}.`)
  }
  return new Map([...all].filter(([name]) => (only === undefined ? name !== winkernel : name === only)))
}
