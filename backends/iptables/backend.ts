import { type Family, families, messageOf } from '@kpng/api'
import {
  asStep,
  type BackendFeatures,
  type FrontendAddress,
  type HeldFrontend,
  type Observations,
  type SyncStep,
} from '@kpng/client'
import {
  backendOf,
  type DataPlane,
  type Frontend,
  FrontendTable,
  type SteppedBackend,
  type Wanted,
} from '@kpng/dataplane'
import { applySetting, linuxHost, sysctlPath } from '@kpng/linux'
import { ChainDrift } from './drift.js'
import { Extras } from './extras.js'
import {
  checkProgram,
  choosePrograms,
  describe,
  type Flavour,
  type Programs,
  programsOf,
  save,
  servesIpv6,
} from './flavour.js'
import { HealthChecks } from './health-checks.js'
import { heldAnswer, heldIn } from './held.js'
import { mainName } from './names.js'
import { type IptablesOptions, type Settings, settingsOf } from './options.js'
import { deleteCounters, makeCounters, readCounts } from './packet-counts.js'
import { servesLoopback } from './place.js'
import { removeChains } from './removal.js'
import { changeInput, fullInput, restore } from './restore.js'
import { RuleState } from './rule-state.js'
import { parseSaved, type Saved } from './save.js'
import { linesAtOnce } from './steps.js'

/** Serves one node's view with iptables. */
export function iptablesBackend(options: IptablesOptions = {}): SteppedBackend {
  const settings = settingsOf(options)
  const { log, driftCheckIntervalMs, deleteStaleFlows, leftovers } = settings
  const frontends = new FrontendTable(settings.dataplane, log)
  const plane = new Iptables(settings, frontends, options.name !== undefined)
  return backendOf(plane, { frontends, host: linuxHost, log, driftCheckIntervalMs, deleteStaleFlows, leftovers })
}

/** What was found at the start. */
interface Opened {
  readonly programs: Programs
  readonly flavour: Flavour
  /** By family that is served. */
  readonly states: ReadonlyMap<Family, RuleState>
  readonly drift: ChainDrift
}

/** What iptables-save shows, by family that is served. */
type Held = ReadonlyMap<Family, Saved>

/** The input of iptables-restore, by family. */
interface Plan {
  readonly inputs: ReadonlyMap<Family, string>
  /** As it was asked for, so that it can be asked for again without what iptables refuses. */
  readonly wanted: Wanted<Held>
}

/** The chains of one kpng: a change writes the chains that changed, each table in one step. */
class Iptables implements DataPlane<Held, Plan> {
  readonly name = 'iptables'
  readonly needs = { rights: ['CAP_NET_ADMIN'], programs: [] }
  readonly lockName: string
  readonly observations: Observations = { listener: {}, packets: readCounts }
  readonly #settings: Settings
  readonly #frontends: FrontendTable
  readonly #isNamed: boolean
  readonly #extras = new Extras()
  readonly #healthChecks = new HealthChecks()
  #opened: Opened | undefined
  #hasWrittenAll = false

  constructor(settings: Settings, frontends: FrontendTable, isNamed: boolean) {
    this.#settings = settings
    this.#frontends = frontends
    this.#isNamed = isNamed
    this.lockName = `iptables chains ${settings.names.services}`
  }

  get families(): readonly Family[] {
    return [...(this.#opened?.states.keys() ?? [])]
  }

  async open(): Promise<void> {
    const { names, name, log } = this.#settings
    const programs = await choosePrograms(this.#settings.flavour, names.owner, log)
    await checkProgram(programs.IPv4)
    const { version, flavour, randomFully } = await describe(programs.IPv4)
    log.info('Serving with iptables', { version, program: programs.IPv4, name })
    // A specialised proxier would count into the same counters as the main one.
    if (name === mainName && (await makeCounters(log))) this.#extras.use('counters')
    const extras = this.#extras
    const rules = {
      ...this.#settings,
      get counters() {
        return extras.uses('counters')
      },
      detectLocal: this.#settings.dataplane.detectLocal,
      randomFully,
      serves: ({ protocol }: Frontend) => protocol !== 'sctp' || extras.uses('sctp'),
    }
    const served = (await servesIpv6(programs, this.#settings)) ? families : (['IPv4'] as const)
    const states = new Map(served.map((family) => [family, new RuleState(family, rules)]))
    const drift = new ChainDrift({ programs, states, names, log })
    this.#opened = { programs, flavour, states, drift }
  }

  async read(): Promise<Held> {
    const { programs, states } = this.#open
    const saved = [...states.keys()].map(async (family) => [family, parseSaved(await save(programs[family]))] as const)
    return new Map(await Promise.all(saved))
  }

  async plan(wanted: Wanted<Held>): Promise<Plan> {
    const { states, flavour } = this.#open
    const { names } = this.#settings
    const maxLines = linesAtOnce[flavour]
    const inputs = new Map<Family, string>()
    const healthChecks = this.#healthChecks.rulesFor(wanted.view, wanted.full ? undefined : wanted.changes)
    if (wanted.full) {
      // iptables-save runs meanwhile.
      for (const state of states.values()) state.rebuild(this.#frontends, healthChecks)
      for (const [family, saved] of await wanted.held) {
        inputs.set(family, fullInput((states.get(family) as RuleState).chains, names, saved, maxLines))
      }
    } else {
      for (const [family, state] of states) {
        const update = state.change(wanted.changed.frontends, this.#frontends, healthChecks)
        inputs.set(family, changeInput(update, maxLines))
      }
    }
    return { inputs, wanted }
  }

  async write(plan: Plan, steps: SyncStep[] | undefined): Promise<undefined> {
    if (!plan.wanted.full) return await this.#restore(plan, steps)
    const hasSctp = [...this.#frontends.all()].some(({ protocol }) => protocol === 'sctp')
    const needed = ['counters' as const, ...(hasSctp ? (['sctp'] as const) : [])]
    const again = async () => this.#restore(await this.plan({ ...plan.wanted, full: true, held: this.read() }), steps)
    await this.#restore(plan, steps).catch((error) =>
      this.#extras.leaveOutRefused(error, needed, again, this.#settings.log),
    )
    // The rule that keeps other machines out of 127.0.0.0/8 is there now.
    if (servesLoopback(this.#frontends.node, this.#settings.localhostNodePorts)) await routeLoopback(this.#settings)
    await this.#open.drift.afterFullSync()
    if (!this.#hasWrittenAll) await this.#removeOtherFlavour()
    this.#hasWrittenAll = true
  }

  /** The rules stay and go on serving. */
  close(): void {
    this.#opened = undefined
  }

  async remove(): Promise<void> {
    const { names, lockWaitSeconds, log } = this.#settings
    await removeChains({ only: this.#isNamed ? names : undefined, lockWaitSeconds, log })
    await deleteCounters()
  }

  drift(): Promise<string | undefined> {
    return this.#open.drift.look()
  }

  /** The ownership chain is written with the first rules, and goes with the last. */
  async hasRules(): Promise<boolean> {
    const { programs } = this.#open
    return parseSaved(await save(programs.IPv4)).nat.chains.has(this.#settings.names.owner)
  }

  features(): BackendFeatures {
    return {
      name: 'iptables',
      kinds: ['clusterIP', 'externalIP', 'loadBalancerIP', 'nodePort'],
      protocols: this.#extras.uses('sctp') ? ['tcp', 'udp', 'sctp'] : ['tcp', 'udp'],
      families: this.families,
      sessionAffinity: true,
      sourceRanges: true,
      wholeAddresses: true,
      keepsSourceAddress: true,
      // The kernel does not route ::1.
      localhostNodePorts: this.#settings.localhostNodePorts ? ['IPv4'] : false,
      guardsClusterIps: false,
      counters: false,
      directServerReturn: false,
    }
  }

  async held(frontend: FrontendAddress): Promise<HeldFrontend | undefined> {
    const saved = parseSaved(await save(this.#open.programs[frontend.family]))
    const held = heldIn(saved, this.#settings.names, frontend)
    return held && (await heldAnswer(held))
  }

  /** The skeleton asks for nothing before `open`. */
  get #open(): Opened {
    return this.#opened as Opened
  }

  /** One restore per family. All are waited for, also if one fails: the next sync must not meet one that is under way. */
  async #restore({ inputs }: Plan, steps: SyncStep[] | undefined): Promise<undefined> {
    const { programs } = this.#open
    const written = [...inputs].map(async ([family, input]) => {
      if (input === '') return
      const attributes = { 'kpng.bytes': input.length, 'kpng.family': family }
      await asStep(steps, 'iptables-restore', attributes, () => restore(programs[family], input, this.#settings))
    })
    for (const result of await Promise.allSettled(written)) if (result.status === 'rejected') throw result.reason
  }

  /** What was written in the other flavour before would go on serving old endpoints. */
  async #removeOtherFlavour(): Promise<void> {
    const { names, lockWaitSeconds, log } = this.#settings
    const { programs, flavour } = this.#open
    const except = families.flatMap((family) => [programs[family], programsOf(flavour)[family]])
    await removeChains({ only: names, except, lockWaitSeconds, log }).catch((error) =>
      log.warn('Chains of kpng in the other flavour of iptables could not be looked for', { error: messageOf(error) }),
    )
  }
}

/** Node ports on loopback addresses need it: without it, the kernel drops the answers. */
async function routeLoopback({ log, onSysctlChanged }: Settings): Promise<void> {
  const setting = { path: sysctlPath('net.ipv4.conf.all.route_localnet'), value: 1 }
  await applySetting(setting, { log, onChanged: (before) => onSysctlChanged(setting.path, before, setting.value) })
}
