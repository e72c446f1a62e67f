import { familyOf, KpngError } from '@kpng/api'
import { defaultSettings, everySetting, type SettingKey, type Settings } from './settings.js'

/** Where a value comes from. */
type Origin = 'flag' | 'file' | 'default'

interface GivenSettings {
  /** What the command line gives. */
  readonly flags?: Partial<Settings>
  /** What the file gives: `readConfigFile(…).settings`. */
  readonly file?: Partial<Settings>
  /** Default: kube-proxy's. */
  readonly defaults?: Settings
}

export interface ResolvedSettings {
  readonly settings: Settings
  readonly origins: { readonly [K in SettingKey]: Origin }
}

/** Flags override the file, the file overrides the defaults, setting by setting. Then the settings are checked together. */
export function resolveSettings({
  flags = {},
  file = {},
  defaults = defaultSettings,
}: GivenSettings): ResolvedSettings {
  const settings: { [key: string]: unknown } = {}
  const origins: { [key: string]: Origin } = {}
  for (const [key, { kind }] of everySetting) {
    const origin = flags[key] !== undefined ? 'flag' : file[key] !== undefined ? 'file' : 'default'
    origins[key] = origin
    const value = { flag: flags, file, default: defaults }[origin][key]
    settings[key] = origin === 'flag' && file[key] !== undefined ? (kind.over?.(value, file[key]) ?? value) : value
  }
  const resolved = {
    settings: withAddressesOfFamily(settings as unknown as Settings, origins),
    origins: origins as { [K in SettingKey]: Origin },
  }
  checkTogether(resolved.settings)
  return resolved
}

/** On a node whose primary address is IPv6, the servers' default addresses are too. */
function withAddressesOfFamily(settings: Settings, origins: { readonly [key: string]: Origin }): Settings {
  if (familyOf(settings.bindAddress) === 'IPv4') return settings
  return {
    ...settings,
    ...(origins.healthzBindAddress === 'default' ? { healthzBindAddress: '[::]:10256' } : {}),
    ...(origins.metricsBindAddress === 'default' ? { metricsBindAddress: '[::1]:10249' } : {}),
  }
}

function checkTogether(settings: Settings): void {
  const { detectLocalMode, bridgeInterface, interfaceNamePrefix, clusterCidrs, syncPeriodMs, minSyncPeriodMs } =
    settings
  const missing = (field: string) =>
    new KpngError(
      'invalid',
      `detectLocalMode is ${detectLocalMode}, which needs ${field}. Set it, or choose another mode.`,
    )
  if (detectLocalMode === 'BridgeInterface' && bridgeInterface === '') throw missing('detectLocal.bridgeInterface')
  if (detectLocalMode === 'InterfaceNamePrefix' && interfaceNamePrefix === '') {
    throw missing('detectLocal.interfaceNamePrefix')
  }
  const families = clusterCidrs.map(familyOf)
  if (clusterCidrs.length > 2 || new Set(families).size !== families.length) {
    throw new KpngError(
      'invalid',
      `clusterCIDR is "${clusterCidrs.join(',')}". Write one CIDR, or one of each IP family with a comma between them.`,
    )
  }
  if (syncPeriodMs <= 0) throw new KpngError('invalid', 'syncPeriod is 0s. It must be greater: write 30s.')
  if (minSyncPeriodMs > syncPeriodMs) {
    throw new KpngError(
      'invalid',
      `minSyncPeriod (${minSyncPeriodMs} ms) is greater than syncPeriod (${syncPeriodMs} ms). Make it smaller.`,
    )
  }
}
