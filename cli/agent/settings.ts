import type { Log } from '@kpng/api'
import type { ResolvedSettings, SettingKey, Settings } from '@kpng/node'
import { type Flags, textFlag } from '../context.js'
import { agentOf, settingsGiven } from './flags.js'

/** Flags override the file, the file overrides the defaults. Each field of the file that kpng does not use gets a warning. */
export async function settingsFrom(flags: Flags, warn: (message: string) => void): Promise<ResolvedSettings> {
  // Not the whole of @kpng/node: the source can ask the API server before that is loaded.
  const { defaultSettings, gateWarnings, readConfigFile, resolveSettings, settingsFromFlags, unusedSettings } =
    await import('@kpng/node/config')
  const path = textFlag(flags, 'config')
  const { mode, uses } = agentOf(flags)
  // A file without a mode is one for the mode that runs: in kube-proxy, it is one for iptables or, on Windows, kernelspace.
  const isOwn = ['iptables', 'ipvs', 'kernelspace'].includes(mode)
  const file = path === undefined ? undefined : await readConfigFile(path, isOwn ? mode : '')
  // kube-proxy called both userspace modes by one name.
  const isOwnMode = file?.settings.mode === 'userspace' && mode.endsWith('userspace')
  const known = [...(uses ?? []), ...(isOwnMode ? (['mode'] as const) : [])]
  const warnings = uses ? unusedSettings(file?.settings ?? {}, known, mode) : []
  for (const { message } of uses ? [...(file?.unknown ?? []), ...warnings] : (file?.warnings ?? [])) warn(message)
  const resolved = resolveSettings({
    flags: settingsFromFlags(settingsGiven(flags)),
    // kube-proxy waits a second between syncs because one costs it a second; a sync here costs milliseconds.
    defaults: { ...defaultSettings, mode, minSyncPeriodMs: 0 },
    ...(file ? { file: uses ? only(file.settings, uses) : file.settings } : {}),
  })
  for (const { message } of gateWarnings(resolved.settings.featureGates)) warn(message)
  return resolved
}

const only = (settings: Partial<Settings>, keys: readonly SettingKey[]): Partial<Settings> =>
  Object.fromEntries(Object.entries(settings).filter(([key]) => keys.includes(key as SettingKey)))

/** The part that needs privileges: the OOM score and, for backends in the kernel, the sysctls of conntrack. */
export async function prepareSystem({ settings }: ResolvedSettings, flags: Flags, log: Log): Promise<void> {
  if (process.platform !== 'linux') return
  const { applyConntrack, applyOomScore } = await import('@kpng/node')
  await applyOomScore({ value: settings.oomScoreAdj, log })
  if (agentOf(flags).uses === undefined) await applyConntrack({ settings, log })
}
