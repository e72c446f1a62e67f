import { KpngError, messageOf } from '@kpng/api'
import type { HttpHandler } from '@kpng/node'
import type { Dashboard, DashboardOptions } from '@kpng/node/dashboard'
import type { Command } from 'commander'
import { type Context, type Flags, given, textFlag } from '../context.js'
import { groups } from '../help.js'
import { pageFiles } from './page-files.js'

export const addDashboardFlags = (
  command: Command,
  summary = 'default: nowhere; 127.0.0.1:12080 without a value',
): Command =>
  command
    .optionsGroup(groups.dashboard)
    .option('--dashboard [ip:port]', `where to serve the live page (${summary})`)
    .option('--dashboard-token-file <file>', 'file with the token that must be shown, for addresses beyond loopback')
    .option('--dashboard-tls-crt <file>', 'certificate of the live page, PEM, for addresses beyond loopback')
    .option('--dashboard-tls-key <file>', 'key of that certificate, PEM')

type Place = Pick<DashboardOptions, 'address' | 'tls' | 'tokenFile'>

/**
 * Where the flags ask for a dashboard, checked. Undefined: nowhere.
 * @param fallback the address if no flag says where
 */
export async function dashboardPlace(flags: Flags, fallback?: string): Promise<Place | undefined> {
  const asked = flags.dashboard ?? fallback
  const tokenFile = textFlag(flags, 'dashboardTokenFile')
  const certFile = textFlag(flags, 'dashboardTlsCrt')
  const keyFile = textFlag(flags, 'dashboardTlsKey')
  if (asked === undefined || asked === '' || asked === 'false' || flags.once) {
    if (flags.dashboard === undefined && (tokenFile ?? certFile ?? keyFile) !== undefined) {
      throw new KpngError('usage', 'The dashboard is not served unless --dashboard says where. Give it as well.')
    }
    return undefined
  }
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw new KpngError('usage', 'Give --dashboard-tls-crt and --dashboard-tls-key together, or neither.')
  }
  const { checkDashboard, defaultDashboard } = await import('@kpng/node/dashboard')
  const place = {
    address: asked === true || asked === 'true' ? defaultDashboard : String(asked),
    ...given('tls', certFile !== undefined && keyFile !== undefined ? { certFile, keyFile } : undefined),
    ...given('tokenFile', tokenFile),
  }
  checkDashboard(place)
  return place
}

/** Serves the live page at the place that the flags name. An error is logged, and kpng runs without the page. */
export async function openDashboard(
  place: Place,
  handler: HttpHandler,
  { log, nodeName }: Pick<Context, 'log' | 'nodeName'>,
): Promise<Dashboard | undefined> {
  const { startDashboard } = await import('@kpng/node/dashboard')
  try {
    return await startDashboard({ ...place, handler, files: pageFiles, nodeName, log })
  } catch (error) {
    log.error('The live page is not served', { error: messageOf(error) })
    return undefined
  }
}
