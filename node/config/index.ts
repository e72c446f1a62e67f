export {
  backendOfMode,
  backendsByMode,
  type KernelBackendOptions,
  type KernelBackendSettings,
  kernelBackendOptions,
} from './backend-options.js'
export type { ConfigWarning } from './document.js'
export { type SettingFlag, settingFlags, settingsFromFlags } from './flags.js'
export { type FileConfig, readConfig, readConfigFile, unusedSettings } from './read-config.js'
export { type Origin, type ResolvedSettings, resolveSettings, type Sources } from './resolve.js'
export { defaultSettings, type SettingKey, type Settings } from './settings.js'
export { configz, flagz } from './show.js'
export { type WatchConfigFileOptions, watchConfigFile } from './watch-config-file.js'
