import type { Host } from '../addresses.js'
import type { KubernetesObject } from '../cases/case.js'
import type { Lab } from '../lab/lab.js'
import { type Canary, mainCanary, nodeBCanary, specialisedCanary } from './canary.js'
import { Proxier } from './proxier.js'
import type { Round } from './rounds.js'

/** The commands of a run, with their placeholders filled. */
export interface Commands {
  readonly main: readonly string[]
  /** The same on node-b. */
  readonly onNodeB: readonly string[]
  /** Undefined if no specialised proxy runs. */
  readonly specialised: readonly string[] | undefined
  /** What serves the objects to proxies that connect to a core. Undefined if none does. */
  readonly core?: readonly string[] | undefined
  /** Added to the environment of all of them. */
  readonly env?: NodeJS.ProcessEnv
}

interface Role {
  readonly title: string
  readonly canary: Canary
  readonly command: readonly string[]
  readonly host: Host
}

/** The proxies of a run: which of them a round needs, and those that run. */
export class Proxiers {
  readonly #lab: Lab
  readonly #commands: Commands
  /** By title. */
  readonly #running = new Map<string, { readonly role: Role; readonly proxier: Proxier }>()
  #core: Proxier | undefined
  /** All that were ever started. */
  readonly #all: Proxier[] = []
  #roles: readonly Role[] = []

  constructor(lab: Lab, commands: Commands) {
    this.#lab = lab
    this.#commands = commands
  }

  /** Ends those that a round does not need, or needs with other flags. */
  async prepare(round: Pick<Round, 'flags' | 'onBothNodes'>): Promise<void> {
    this.#roles = this.#rolesOf(round)
    for (const [title, { role, proxier }] of this.#running) {
      const wanted = this.#roles.find((each) => each.title === title)
      if (wanted?.command.join('\n') === role.command.join('\n')) continue
      this.#running.delete(title)
      await proxier.stop()
    }
  }

  /**
   * The proxy under test comes after the specialised one. In the kernel, newer rules of the same kind see a packet first: so the main proxy
   * sees all packets of the specialised one, and must leave them alone.
   */
  #rolesOf({ flags, onBothNodes = false }: Pick<Round, 'flags' | 'onBothNodes'>): Role[] {
    const { main, onNodeB, specialised } = this.#commands
    const more = flags?.words ?? []
    return [
      ...(specialised
        ? [{ title: 'specialised proxy', canary: specialisedCanary, command: specialised, host: 'node-a' as const }]
        : []),
      ...(onBothNodes
        ? [{ title: 'proxy of node-b', canary: nodeBCanary, command: [...onNodeB, ...more], host: 'node-b' as const }]
        : []),
      { title: 'proxy', canary: mainCanary, command: [...main, ...more], host: 'node-a' },
    ]
  }

  /** The objects by which it is seen that the proxies of this round have programmed it. */
  canaryObjects(round: number): KubernetesObject[] {
    return this.#roles.flatMap(({ canary }) => canary.objects(round))
  }

  /** Those that this round needs, one after the other; started if they do not run. */
  *needed(): Generator<Proxier> {
    const { core, env } = this.#commands
    if (core && !this.#core) {
      this.#core = new Proxier('core', undefined, core, this.#lab.namespaceOf('node-a'), env)
      this.#all.push(this.#core)
    }
    for (const role of this.#roles) yield this.#running.get(role.title)?.proxier ?? this.#start(role)
  }

  /** Ends the proxy under test. It is started again with the next round. */
  async endMain(signal: NodeJS.Signals): Promise<void> {
    const main = this.#running.get('proxy')
    this.#running.delete('proxy')
    await main?.proxier.stop(signal)
  }

  /** Whether the proxy under test may end by itself from now on. */
  letMainEnd(mayEnd: boolean): void {
    const main = this.#running.get('proxy')
    if (main) main.proxier.mayEnd = mayEnd
  }

  /** Whether the proxy under test has ended as it may. Then it is started again with the next round, as by a supervisor. */
  hasMainEnded(): boolean {
    const main = this.#running.get('proxy')?.proxier
    return main?.mayEnd === true && main.isOver && this.#running.delete('proxy')
  }

  /** The process of the proxy under test. Undefined if it does not run. */
  get mainPid(): number | undefined {
    return this.#running.get('proxy')?.proxier.pid
  }

  /** The proxy under test serves, and has not ended. */
  get isServing(): boolean {
    const main = this.#running.get('proxy')?.proxier
    return main?.hasServed === true && !main.hasEnded
  }

  /** The proxy under test has ended, for whatever reason. */
  get isMainOver(): boolean {
    return this.#running.get('proxy')?.proxier.isOver ?? false
  }

  get hasEnded(): boolean {
    return this.#all.some(({ hasEnded }) => hasEnded)
  }

  get notes(): string[] {
    return [...new Set(this.#all.flatMap(({ notes }) => notes))]
  }

  /** What the proxy under test said last. */
  get mainSaid(): string {
    return this.#running.get('proxy')?.proxier.said ?? '(it does not run)'
  }

  async stop(): Promise<void> {
    await Promise.all(this.#all.map((proxier) => proxier.stop()))
  }

  #start(role: Role): Proxier {
    const proxier = new Proxier(
      role.title,
      role.canary,
      role.command,
      this.#lab.namespaceOf(role.host),
      this.#commands.env,
    )
    this.#running.set(role.title, { role, proxier })
    this.#all.push(proxier)
    return proxier
  }
}
