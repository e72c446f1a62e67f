import { applySetting, sysctlPath } from '@kpng/linux'
import type { Settings } from './options.js'

/** Node ports on loopback addresses need it: without it, the kernel drops the answers. */
export async function routeLoopback({ log, onSysctlChanged }: Settings): Promise<void> {
  const setting = { path: sysctlPath('net.ipv4.conf.all.route_localnet'), value: 1 }
  await applySetting(setting, { log, onChanged: (before) => onSysctlChanged(setting.path, before, setting.value) })
}
