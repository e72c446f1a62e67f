import { isDeepStrictEqual } from 'node:util'
import { pause } from '@kpng/client'
import type { Store } from '@kpng/core/store'
import type { Playground, PlaygroundOptions } from '@kpng/playground'
import type { Answer } from './caller.js'
import { addressText, demoName, demoService, describeChange, type ServiceView, servedPart } from './demo-service.js'
import { changeText, type Hint, type LastChange, milliseconds } from './screen.js'

/** Where the demo's Services are served, and by what. */
export interface DataPlane {
  readonly title: string
  /** Something unusual that a user should know from the start. */
  readonly note?: string
  /** Whether the Service of the API server can be served: see `leaveApiServiceAlone`. */
  readonly servesApiService: boolean
  /** How the cluster must be made for it. */
  readonly options: Partial<PlaygroundOptions>
  /** The socket of the agent API of its node, while it serves. */
  readonly agentSocket: string
  /** Serves what the store says, until the signal is aborted. Calls back after each sync that the demo Service was in. The live page shows the hints. */
  serve(
    store: Store,
    nodeName: string,
    onSync: (times: SyncTimes) => void,
    hints?: () => readonly Hint[],
  ): Promise<void>
  /** After the cluster's end. */
  close(): Promise<void>
  /** One call, made from where the data plane is. */
  call(host: string, port: number): Promise<Answer>
  /** What can be tried with it beside kubectl. */
  hints(service: ServiceView | undefined): readonly Hint[]
}

/** A sync of the data plane that had changes of the demo Service in it. Unix times in milliseconds. */
export interface SyncTimes {
  readonly startedAtMs: number
  readonly endedAtMs: number
}

/** Without the name of who it was: in a pipe each new sentence is a line. */
const notOurs = 'something answers that is not a pod of this playground'

export const demoKey = `default/${demoName}`

/** As the reader can call it: in a checkout, npx finds it. The socket is that of the user who runs the playground. */
const kpng = `${process.env.SUDO_USER ? 'sudo ' : ''}${process.argv[1]?.endsWith('.js') ? 'npx kpng' : 'kpng'}`

/** Asks the playground's own agent, which knows what the data plane holds. */
export const explainCommand = ({ agentSocket }: Pick<DataPlane, 'agentSocket'>): string =>
  `${kpng} explain ${demoName} --agent-socket ${agentSocket}`

const now = () => performance.timeOrigin + performance.now()
const timeOfDay = () => new Date().toTimeString().slice(0, 8)

/**
 * Watches the demo Service, calls it once a second, and keeps what there is to show. Each piece of news is also a line of text, for
 * those who have no screen.
 */
export class Session {
  service: ServiceView | undefined
  answer: Answer | undefined
  readonly answers = new Map<string, number>()
  change: LastChange | undefined
  readonly #playground: Playground
  readonly #dataPlane: DataPlane
  readonly #onNews: (line: string | undefined) => void
  readonly #leave: (() => void)[]
  /** What the data plane had at its last sync. */
  #synced: ServiceView | undefined
  /** Since when the data plane is behind. */
  #changedAtMs: number | undefined

  /** @param onNews told after every change of what there is to show; with a line if it is worth one */
  constructor(playground: Playground, dataPlane: DataPlane, onNews: (line: string | undefined) => void) {
    this.#playground = playground
    this.#dataPlane = dataPlane
    this.#onNews = onNews
    const look = () => this.#look()
    this.#leave = ['Service', 'EndpointSlice'].map((kind) => playground.objects.onChange(kind, look))
    this.#look()
  }

  #look(): void {
    const service = demoService(this.#playground.objects)
    if (isDeepStrictEqual(service, this.service)) return
    this.service = service
    if (isDeepStrictEqual(servedPart(service), servedPart(this.#synced))) this.#changeIsDone(undefined)
    else {
      this.#changedAtMs ??= now()
      this.#onNews(undefined)
    }
  }

  /** The data plane has taken over what was there when the sync started. */
  synced({ startedAtMs, endedAtMs }: SyncTimes): void {
    if (this.#changedAtMs === undefined || startedAtMs < this.#changedAtMs) return
    // The first one has waited for the data plane to start.
    this.#changeIsDone(this.change === undefined ? undefined : endedAtMs - this.#changedAtMs)
  }

  /** The data plane is up to date. Without a latency if it had nothing to do. */
  #changeIsDone(latencyMs: number | undefined): void {
    const what = describeChange(this.#synced, this.service)
    this.#synced = this.service
    this.#changedAtMs = undefined
    if (what === '') return
    this.change = { what, at: timeOfDay(), ...(latencyMs === undefined ? {} : { latencyMs }) }
    this.#onNews(`${this.change.at} ${changeText(this.change)}`)
  }

  /** Calls once a second, until the signal is aborted. */
  async callUntil(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const { target } = this.service ?? {}
      if (target) {
        const answer = this.#checked(await this.#dataPlane.call(target.host, target.port))
        // The Service may have been edited meanwhile: then the answer is of yesterday.
        if (isDeepStrictEqual(target, this.service?.target) && !signal.aborted) this.#record(answer)
      }
      await pause(1000, signal)
    }
    for (const leave of this.#leave) leave()
  }

  /** Another playground's pods must never be taken for ours, and a Service that is given to another proxy is not a fault. */
  #checked(answer: Answer): Answer {
    if ('problem' in answer) {
      const other = this.service?.otherProxy
      const why = other === undefined ? '' : `; the label service-proxy-name gives the Service to "${other}"`
      return { ...answer, problem: answer.problem + why }
    }
    if (this.#playground.objects.get('Pod', answer.pod)) return answer
    return { problem: notOurs, ms: answer.ms }
  }

  #record(answer: Answer): void {
    const line = this.#lineFor(answer)
    this.answer = answer
    if ('pod' in answer) this.answers.set(answer.pod, (this.answers.get(answer.pod) ?? 0) + 1)
    this.#onNews(line)
  }

  /** Only what is new: the first answer of a pod, silence, and its end. */
  #lineFor(answer: Answer): string | undefined {
    const where = `${timeOfDay()} http://${this.service ? addressText(this.service) : ''}`
    const before = this.answer && 'problem' in this.answer ? this.answer.problem : undefined
    if ('problem' in answer) return answer.problem === before ? undefined : `${where} → nobody: ${answer.problem}`
    if (this.answers.has(answer.pod) && before === undefined) return undefined
    return `${where} → ${answer.pod} in ${milliseconds(answer.ms)}`
  }

  /** Commands with the names that there are now. */
  hints(): Hint[] {
    const pods = (this.service?.endpoints ?? []).filter(({ state }) => state === 'ready').map(({ pod }) => pod)
    const [first, second = first] = pods
    const replicas = (this.service?.endpoints.length ?? 0) > 3 ? 3 : 5
    return [
      { command: `export KUBECONFIG=${this.#playground.kubeconfigPath}`, effect: '' },
      { command: `kubectl scale deployment ${demoName} --replicas ${replicas}`, effect: 'other pods answer' },
      ...(first === undefined
        ? []
        : [
            { command: `kubectl label pod ${first} playground.kpng.io/ready=false`, effect: 'it gets no more calls' },
            { command: `kubectl delete pod ${second}`, effect: 'it drains, another takes over' },
          ]),
      { command: `kubectl edit service ${demoName}`, effect: 'change its port: the calls follow' },
      ...this.#dataPlane.hints(this.service),
      { command: explainCommand(this.#dataPlane), effect: 'where connections go, and why' },
    ]
  }
}
