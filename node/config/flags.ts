import { KpngError } from '@kpng/api'
import { flagText } from './kinds.js'
import { everySetting, type SettingKey, type Settings } from './settings.js'

/** A flag of the command line. */
export interface SettingFlag {
  readonly key: SettingKey
  /** Without the dashes. */
  readonly flag: string
  readonly summary: string
  /** What its value is, for the help. */
  readonly placeholder: string
  /** The default as it would be written; undefined if there is none. */
  readonly fallback: string | undefined
  /** Whether `--flag` alone means true. */
  readonly boolean: boolean
}

/** The flags of all settings, in the order of the table. */
export const settingFlags: readonly SettingFlag[] = everySetting.map(([key, { flag, summary, fallback, kind }]) => ({
  key,
  flag,
  summary,
  placeholder: kind.placeholder,
  fallback: flagText(kind.toFile(fallback)) || undefined,
  boolean: typeof fallback === 'boolean',
}))

/** Reads the texts of flags. Undefined: the flag was not given; true: it was given without a value. */
export function settingsFromFlags(
  values: { readonly [K in SettingKey]?: string | boolean | undefined },
): Partial<Settings> {
  const settings: { [key: string]: unknown } = {}
  for (const [key, { flag, kind }] of everySetting) {
    const value = values[key]
    if (value === undefined) continue
    try {
      const read = kind.fromFlag(String(value), `--${flag}`)
      if (read !== undefined) settings[key] = read
    } catch (error) {
      if (error instanceof KpngError) throw new KpngError('usage', error.message, { cause: error })
      throw error
    }
  }
  return settings as Partial<Settings>
}
