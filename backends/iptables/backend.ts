import { hostname } from 'node:os'
import { type Family, families, KpngError, messageOf } from '@kpng/api'
import {
  asStep,
  type BackendFeatures,
  type Changes,
  type FrontendAddress,
  type HeldFrontend,
  type NodeView,
  type Observations,
  type Runner,
  type SyncStep,
} from '@kpng/client'
import {
  allFlowChecks,
  briefly,
  DriftWatch,
  type FlowCheck,
  type Frontend,
  type FrontendBackend,
  FrontendTable,
  flowChecks,
  StaleFlowRemoval,
} from '@kpng/dataplane'
import { applySetting, deleteFlows, lockName, type NameLock, reachableAddresses, sysctlPath } from '@kpng/linux'
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
import { parseSaved } from './save.js'
import { linesAtOnce } from './steps.js'

/** Serves one node's view with iptables. */
export function iptablesBackend(options: IptablesOptions = {}): FrontendBackend {
  return new IptablesBackend(settingsOf(options), options.name !== undefined)
}

/** What was found at the start. */
interface Started {
  readonly programs: Programs
  readonly flavour: Flavour
  /** By family that is served. */
  readonly states: ReadonlyMap<Family, RuleState>
  readonly drift: ChainDrift
  readonly watch: DriftWatch
}

/**
 * States: *unknown*, until a full sync has written all chains, and again after a failure; *in step* with the kernel, when a change
 * writes the chains that changed; *syncing* in between.
 */
class IptablesBackend implements FrontendBackend {
  readonly frontends: FrontendTable
  readonly observations: Observations = { listener: {}, packets: readCounts }
  readonly #settings: Settings
  readonly #isNamed: boolean
  readonly #flows: StaleFlowRemoval
  #started: Started | undefined
  #lock: NameLock | undefined
  #inStep = false
  #syncing = false
  #syncs = 0
  #hasSyncedAll = false
  readonly #extras = new Extras()
  readonly #healthChecks = new HealthChecks()
  constructor(settings: Settings, isNamed: boolean) {
    const { log } = settings
    this.#settings = settings
    this.#isNamed = isNamed
    this.frontends = new FrontendTable(settings.dataplane, log)
    this.#flows = new StaleFlowRemoval({
      ...{ table: this.frontends, deleteFlows, log },
      onRemoved: (...seen) => this.observations.listener.staleFlows?.(...seen),
    })
  }

  async setup(runner: Runner): Promise<void> {
    const { names, name, log } = this.#settings
    this.#lock = await lockName(`iptables chains ${names.services}`, `kpng (pid ${process.pid}) on ${hostname()}`)
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
    const watch = new DriftWatch({
      ...{ log, intervalMs: this.#settings.driftCheckIntervalMs },
      lastSync: () => (this.#inStep && !this.#syncing ? this.#syncs : undefined),
      look: () => drift.look(),
      onDrift: (reason) => runner.requestFullSync(reason),
    })
    this.#started = { programs, flavour, states, drift, watch }
  }

  async sync(view: NodeView, changes: Changes, steps?: SyncStep[]): Promise<void> {
    const started = this.#open()
    const wasInStep = this.#inStep && !changes.full
    this.#inStep = false
    this.#syncing = true
    this.#syncs++
    try {
      // The addresses are read only if the Node object has none.
      const machine = {
        families: [...started.states.keys()],
        get addresses() {
          return reachableAddresses()
        },
      }
      const changed = this.frontends.apply(view, changes, machine)
      const healthChecks = this.#healthChecks.rulesFor(view, wasInStep ? changes : undefined)
      let checks: readonly FlowCheck[]
      if (wasInStep) {
        await this.#eachFamily(started, steps, (state) =>
          changeInput(state.change(changed.frontends, this.frontends, healthChecks), linesAtOnce[started.flavour]),
        )
        checks = flowChecks(changed.frontends)
      } else {
        await this.#syncAll(started, healthChecks, steps)
        checks = allFlowChecks(this.frontends)
      }
      this.#inStep = true
      if (this.#settings.deleteStaleFlows && checks.length > 0) {
        await asStep(steps, 'conntrack', {}, () => briefly(this.#flows.remove(checks)))
      }
    } finally {
      this.#syncing = false
    }
  }

  /** The rules stay and go on serving. */
  async close(): Promise<void> {
    const started = this.#started
    this.#started = undefined
    this.#inStep = false
    await started?.watch.close()
    await this.#flows.close()
    await this.#lock?.release()
    this.#lock = undefined
  }

  async cleanup(): Promise<void> {
    await this.close()
    const { names, lockWaitSeconds, log } = this.#settings
    await removeChains({ only: this.#isNamed ? names : undefined, lockWaitSeconds, log })
    await deleteCounters()
  }

  /** The ownership chain is written with the first rules, and goes with the last. */
  async hasRules(): Promise<boolean> {
    const { programs } = this.#open()
    return parseSaved(await save(programs.IPv4)).nat.chains.has(this.#settings.names.owner)
  }

  features(): BackendFeatures {
    return {
      name: 'iptables',
      kinds: ['clusterIP', 'externalIP', 'loadBalancerIP', 'nodePort'],
      protocols: this.#extras.uses('sctp') ? ['tcp', 'udp', 'sctp'] : ['tcp', 'udp'],
      families: [...(this.#started?.states.keys() ?? [])],
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
    const { programs } = this.#open()
    const saved = parseSaved(await save(programs[frontend.family]))
    const held = heldIn(saved, this.#settings.names, frontend)
    return held && (await heldAnswer(held))
  }

  #open(): Started {
    if (this.#started) return this.#started
    throw new KpngError('usage', 'The iptables backend was not set up. Call setup() first.')
  }

  /** Writes every chain, removes those that nobody needs any more, and adds missing jumps: each table in one step. */
  async #syncAll(started: Started, healthChecks: readonly string[], steps: SyncStep[] | undefined): Promise<void> {
    const { names, lockWaitSeconds, log } = this.#settings
    if (servesLoopback(this.frontends.node, this.#settings.localhostNodePorts)) await routeLoopback(this.#settings)
    const writeAll = () =>
      this.#eachFamily(started, steps, async (state, program) => {
        const saved = save(program)
        // The program runs meanwhile; if it fails, that is seen below.
        saved.catch(() => {})
        state.rebuild(this.frontends, healthChecks)
        return fullInput(state.chains, names, parseSaved(await saved), linesAtOnce[started.flavour])
      })
    const hasSctp = [...this.frontends.all()].some(({ protocol }) => protocol === 'sctp')
    const needed = ['counters' as const, ...(hasSctp ? (['sctp'] as const) : [])]
    await writeAll().catch((error) => this.#extras.leaveOutRefused(error, needed, writeAll, log))
    await started.drift.afterFullSync()
    if (this.#hasSyncedAll) return
    // What was written in the other flavour before would go on serving old endpoints.
    const { programs, flavour } = started
    const except = families.flatMap((family) => [programs[family], programsOf(flavour)[family]])
    await removeChains({ only: names, except, lockWaitSeconds, log }).catch((error) =>
      log.warn('Chains of kpng in the other flavour of iptables could not be looked for', { error: messageOf(error) }),
    )
    this.#hasSyncedAll = true
  }

  /** One restore per family. All are waited for, also if one fails: the next sync must not meet one that is under way. */
  async #eachFamily(
    { programs, states }: Started,
    steps: SyncStep[] | undefined,
    inputOf: (state: RuleState, program: string) => string | Promise<string>,
  ): Promise<void> {
    const written = [...states].map(async ([family, state]) => {
      const program = programs[family]
      const input = await inputOf(state, program)
      if (input === '') return
      const attributes = { 'kpng.bytes': input.length, 'kpng.family': family }
      await asStep(steps, 'iptables-restore', attributes, () => restore(program, input, this.#settings))
    })
    for (const result of await Promise.allSettled(written)) if (result.status === 'rejected') throw result.reason
  }
}

/** Node ports on loopback addresses need it: without it, the kernel drops the answers. */
async function routeLoopback({ log, onSysctlChanged }: Settings): Promise<void> {
  const setting = { path: sysctlPath('net.ipv4.conf.all.route_localnet'), value: 1 }
  await applySetting(setting, { log, onChanged: (before) => onSysctlChanged(setting.path, before, setting.value) })
}
