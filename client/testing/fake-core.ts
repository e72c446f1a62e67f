import { isDeepStrictEqual } from 'node:util'
import { create } from '@bufbuild/protobuf'
import { type Family, globalv1, ipsOf, KpngError, type Log, localv1, servicePath, silentLog } from '@kpng/api'
import type { Backend, Changes, ServiceEndpoints } from '../backend.js'
import type { ChangeSet, ChangeSetSource } from '../change-set.js'
import { NamedEndpoints } from '../node-state.js'
import { endpointsOfPort } from '../ports.js'
import { runBackend, type SyncReport } from '../runner.js'
import { ManualClock } from './manual-clock.js'
import { item, type TestNode, type TestService } from './objects.js'

export interface FakeCoreOptions {
  /** The node that the backend is on. Default: `node-a`. */
  readonly nodeName?: string
  /** Where the runner logs. Default: nowhere. */
  readonly log?: Log
}

/**
 * A kpng core for tests. A test says what the cluster holds; the backend under test is fed through the real runner, so that it
 * sees what it would see in production: everything first, then differences, and everything again after an error.
 *
 *     const core = new FakeCore(backend)
 *     core.set({ name: 'web', ips: { clusterIps: ips('10.96.0.1') }, endpoints: [endpoint('10.244.1.5')] })
 *     await core.sync()
 *     // … look at the data plane …
 *     await core.stop()
 *
 * Time stands still: nothing is retried or repeated unless a test calls `sync`.
 */
export class FakeCore {
  readonly nodeName: string
  /** The runner's clock. `sync` moves it far enough for a retry. */
  readonly clock = new ManualClock()
  /** Every sync so far, the failed ones too. */
  readonly syncs: SyncReport[] = []
  readonly #stop = new AbortController()
  readonly #ended: Promise<void>
  #failure: unknown
  #hasEnded = false
  #syncing = false

  /** What the cluster holds, and what of it the backend was told. */
  readonly #services = new Map<string, ServiceEndpoints>()
  #node: globalv1.Node | undefined
  #serviceCidrs: ReadonlyMap<string, localv1.ServiceCIDR> = new Map()
  #told: Pick<ChangeSet, 'node' | 'serviceCidrs'> & { readonly services: ReadonlyMap<string, ServiceEndpoints> } = {
    services: new Map(),
    node: undefined,
    serviceCidrs: new Map(),
  }
  #reset = true

  #offered: ChangeSet | undefined
  /** Wakes those that wait for the runner, or the runner that waits for a change set. */
  #progress: () => void = () => {}
  #offer: () => void = () => {}

  constructor(backend: Backend, { nodeName = 'node-a', log = silentLog }: FakeCoreOptions = {}) {
    this.nodeName = nodeName
    this.#ended = runBackend(backend, {
      changeSets: this.#changeSets,
      nodeName,
      log,
      signal: this.#stop.signal,
      clock: this.clock,
      maxRetryMs: retryMs,
      onQueued: ({ full, services, node, serviceCidrs }) => {
        // The runner says "nothing is queued" when a sync begins.
        if (!full && services.size === 0 && !node && !serviceCidrs) this.#syncing = true
      },
      onSync: (report) => {
        this.#syncing = false
        this.syncs.push(report)
        this.#progress()
      },
    })
      .catch((error) => {
        this.#failure = error
      })
      .finally(() => {
        this.#hasEnded = true
        this.#progress()
      })
  }

  /**
   * Adds or replaces Services. As a core does, it says in which families a port is served: from the endpoints given here, unless
   * the test gives `servedFamilies`, for endpoints that only other nodes may use.
   */
  set(...services: readonly TestService[]): this {
    for (const given of services) {
      const { service, endpoints } = item(given)
      const added = { service, endpoints: inOrder(endpoints) }
      for (const port of added.service.ports) port.servedFamilies ??= servedFamilies(added, port)
      this.#services.set(servicePath(added.service.namespace, added.service.name), added)
    }
    return this
  }

  /** Removes Services. @param paths `namespace/name`, or only the name of one in the namespace `default` */
  delete(...paths: readonly string[]): this {
    for (const path of paths) {
      const full = path.includes('/') ? path : servicePath('default', path)
      if (!this.#services.delete(full)) throw new KpngError('usage', `There is no Service ${full} to delete.`)
    }
    return this
  }

  /** What is known of the node itself: labels, addresses. Default: nothing. Undefined: nothing any more. */
  setNode(node: TestNode | undefined): this {
    this.#node = node && create(globalv1.NodeSchema, { ...node, name: this.nodeName })
    return this
  }

  /** The ranges that cluster IPs come from. Default: not known. */
  setServiceCidrs(...cidrs: readonly string[]): this {
    const cidr = create(localv1.ServiceCIDRSchema, { name: 'kubernetes', cidrs: [...cidrs] })
    this.#serviceCidrs = new Map(cidrs.length > 0 ? [[cidr.name, cidr]] : [])
    return this
  }

  /** Loses the connection: the next `sync` sends the whole state again. A backend is called only if it differs. */
  reconnect(): this {
    this.#reset = true
    return this
  }

  /**
   * Sends what changed as one change set and waits until the backend is done with it. Also lets a retry happen, and a full sync
   * that the backend asked for.
   * @returns what the backend was told; undefined if it was not called, because nothing changed for it
   * @throws what the backend threw, from `sync` or from `setup`. The next call lets the runner try again.
   */
  async sync(): Promise<Changes | undefined> {
    const before = this.syncs.length
    this.#offered = this.#nextChangeSet()
    this.#offer()
    await this.#until(() => this.#offered === undefined)
    await turn()
    await this.#until(() => !this.#syncing)
    if (this.syncs.length === before) {
      this.clock.advance(retryMs)
      await turn()
      await this.#until(() => !this.#syncing)
    }
    const last = this.syncs.at(-1)
    if (this.syncs.length === before || !last) return undefined
    if ('error' in last) throw last.error
    return last.changes
  }

  /** Ends the run as SIGTERM does: the backend's `close` is called, its `cleanup` is not. */
  async stop(): Promise<void> {
    this.#stop.abort()
    this.#offer()
    await this.#ended
    this.#throwFailure()
  }

  async #until(holds: () => boolean): Promise<void> {
    while (true) {
      this.#throwFailure()
      if (this.#hasEnded) throw new KpngError('usage', 'The run of this backend has ended: make a new FakeCore.')
      if (holds()) return
      await new Promise<void>((resolve) => {
        this.#progress = resolve
      })
    }
  }

  /** Throws the reason why the run ended, once: after that, `stop` succeeds. */
  #throwFailure(): void {
    const failure = this.#failure
    this.#failure = undefined
    if (failure !== undefined) throw failure
  }

  readonly #changeSets: ChangeSetSource = (_request, signal) => this.#stream(signal)

  async *#stream(signal: AbortSignal): AsyncGenerator<ChangeSet> {
    while (!signal.aborted) {
      if (this.#offered) {
        yield this.#offered
        // Asked for the next one: this one has been taken in.
        this.#offered = undefined
        this.#progress()
      }
      if (this.#offered === undefined && !signal.aborted) {
        await new Promise<void>((resolve) => {
          this.#offer = resolve
        })
      }
    }
  }

  /** Undefined: nothing is new. */
  #nextChangeSet(): ChangeSet | undefined {
    const [reset, told] = [this.#reset, this.#told]
    const now = { services: new Map(this.#services), node: this.#node, serviceCidrs: this.#serviceCidrs }
    this.#reset = false
    this.#told = now
    const known = reset ? new Map<string, ServiceEndpoints>() : told.services
    const services = new Map<string, ServiceEndpoints | undefined>()
    for (const [path, one] of now.services) if (!isDeepStrictEqual(known.get(path), one)) services.set(path, one)
    for (const path of known.keys()) if (!now.services.has(path)) services.set(path, undefined)
    const { node, serviceCidrs } = now
    const isSame = isDeepStrictEqual([node, serviceCidrs], [told.node, told.serviceCidrs])
    return reset || services.size > 0 || !isSame ? { reset, services, node, serviceCidrs, triggers: [] } : undefined
  }
}

/** Longer than any pause of the runner here. */
const retryMs = 60_000

/** Everything that can happen without the clock has happened then: promises are settled before. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

function servedFamilies(of: ServiceEndpoints, port: localv1.PortMapping): localv1.FamilyFlags {
  const isServed = (family: Family) =>
    endpointsOfPort(of, port).some(({ endpoint }) => ipsOf(endpoint.ips, family).length > 0)
  return create(localv1.FamilyFlagsSchema, { v4: isServed('IPv4'), v6: isServed('IPv6') })
}

/** As a core tells them: in the order of their names. Those of the same name are the same endpoint, and the last one counts. */
function inOrder(endpoints: readonly localv1.Endpoint[]): readonly localv1.Endpoint[] {
  const nameOf = ({ hostname, ips }: localv1.Endpoint) =>
    hostname || [...ipsOf(ips, 'IPv4'), ...ipsOf(ips, 'IPv6')].join(',')
  return NamedEndpoints.none.with(new Map(endpoints.map((one) => [nameOf(one), one]))).messages
}
