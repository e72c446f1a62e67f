import { messageOf, silentLog } from '@kpng/api'
import { checkNetworkRights, loadLibc } from '@kpng/linux'
import { checkRuleset, usableFamilies } from '@kpng/linux/nftables'
import { settingsOf } from './options.js'
import { nftRuleset } from './rules/skeleton.js'

/** Why this machine cannot hold kpng's rules, as a sentence; undefined if it can. Changes nothing. */
export async function whyUnusable(): Promise<string | undefined> {
  const settings = settingsOf()
  try {
    checkNetworkRights('nftables')
    await checkRuleset(await loadLibc(), usableFamilies(settings.ipv6, silentLog), nftRuleset(settings))
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}
