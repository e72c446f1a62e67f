import { families } from '@kpng/api'
import type { NodeView } from '@kpng/client'
import { FrontendTable } from '@kpng/dataplane'
import { programsOf } from './flavour.js'
import { HealthChecks } from './health-checks.js'
import { type IptablesOptions, settingsOf } from './options.js'
import { fullInput } from './restore.js'
import { RuleState } from './rule-state.js'
import { parseSaved } from './save.js'

/** The whole input of iptables-restore for a view, for people (`--dry-run`) and for tests. The same view gives the same text. */
export function renderRules(view: NodeView, options: IptablesOptions = {}): string {
  const settings = settingsOf(options)
  const { dataplane, ipv6, names } = settings
  const services = new Map([...view.services].sort(([a], [b]) => (a < b ? -1 : 1)))
  const served = ipv6 === false ? (['IPv4'] as const) : families
  const table = FrontendTable.of({ ...view, services }, options, { families: served, addresses: [] })
  const healthChecks = new HealthChecks().rulesFor(view)
  const parts = served.map((family) => {
    const state = new RuleState(family, {
      ...settings,
      detectLocal: dataplane.detectLocal,
      randomFully: true,
      counters: false,
    })
    state.rebuild(table, healthChecks)
    return `# ${programsOf()[family]}-restore --noflush\n${fullInput(state.chains, names, parseSaved(''))}`
  })
  return parts.join('')
}
