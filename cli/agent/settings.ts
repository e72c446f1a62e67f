import type { Log } from '@kpng/api'
import type { ResolvedSettings } from '@kpng/node'
import { type Flags, textFlag } from '../context.js'
import { settingsGiven } from './flags.js'

/** Flags before file before defaults. What the file has and kpng does not is said, one line a field. */
export async function settingsFrom(flags: Flags, warn: (message: string) => void): Promise<ResolvedSettings> {
  const { defaultSettings, readConfigFile, resolveSettings, settingsFromFlags } = await import('@kpng/node')
  const path = textFlag(flags, 'config')
  const file = path === undefined ? undefined : await readConfigFile(path)
  for (const { message } of file?.warnings ?? []) warn(message)
  return resolveSettings({
    flags: settingsFromFlags(settingsGiven(flags)),
    // kube-proxy waits a second between syncs because one costs it a second; a sync here costs milliseconds.
    defaults: { ...defaultSettings, minSyncPeriodMs: 0 },
    ...(file ? { file: file.settings } : {}),
  })
}

/** The part that needs rights: the OOM score and conntrack's sysctls. */
export async function prepareSystem({ settings }: ResolvedSettings, log: Log): Promise<void> {
  const { applyConntrack, applyOomScore } = await import('@kpng/node')
  await applyOomScore({ value: settings.oomScoreAdj, log })
  await applyConntrack({ settings, log })
}
