import { messageOf } from '@kpng/api'
import { type Controller, type ControllerContext, splitKey } from '../controllers/controller.js'
import { WorkQueue } from '../controllers/work-queue.js'
import { clone, equal } from '../objects/json.js'
import type { Node, Pod, PodStatus } from '../objects/kinds.js'
import type { Store } from '../storage/store.js'
import type { EchoIdentity, EchoPort, PodServer } from './echo-server.js'
import type { PodAddresses } from './pod-addresses.js'
import { failedStatus, runningStatus } from './pod-status.js'

/** A pod that runs here. States: starting (its ports are being opened), running, stopped. */
interface Sandbox {
  uid: string
  addresses: string[]
  echo: PodServer
  state: 'starting' | 'running' | 'stopped'
  readyAt: number
  stopAt?: number
}

export interface KubeletOptions {
  readyDelayMs: number
  addresses: PodAddresses
  podServer: (identity: EchoIdentity) => PodServer
}

const component = 'kubelet'
const defaultPort = 8080
/** How many addresses a pod tries before it fails. */
const mostMoves = 200

/** The ports a pod listens on: those its containers name, or 8080 over TCP and UDP. SCTP is not something Node.js speaks. */
export function echoPorts(pod: Pod): EchoPort[] {
  const named = (pod.spec.containers ?? []).flatMap((container) => container.ports ?? [])
  if (named.length === 0)
    return [
      { protocol: 'TCP', port: defaultPort },
      { protocol: 'UDP', port: defaultPort },
    ]
  const ports = named.flatMap(({ protocol = 'TCP', containerPort: port }) =>
    protocol === 'SCTP' ? [] : [{ protocol, port }],
  )
  return ports.filter(
    ({ protocol, port }, index) =>
      ports.findIndex((other) => other.protocol === protocol && other.port === port) === index,
  )
}

/** What went wrong, and what to do about it. */
export function bindProblem(error: unknown, address: string): string {
  const code = (error as NodeJS.ErrnoException).code
  const port = (error as { port?: number }).port ?? ''
  if (code === 'EADDRNOTAVAIL') {
    return `this machine has no address ${address} (macOS has only 127.0.0.1 on loopback); add it with "sudo ifconfig lo0 alias ${address}" and create the pod again`
  }
  if (code === 'EACCES')
    return `port ${port} is below 1024 and needs root; give the container a containerPort of 1024 or more`
  if (code === 'EADDRINUSE')
    return `port ${port} of ${address} is already in use; end what uses it, or choose another containerPort`
  return messageOf(error)
}

/** Runs the pods of every node: an echo server each, its readiness, and its end after the grace period. */
export class Kubelet implements Controller {
  readonly #queue: WorkQueue
  readonly #leave: () => void
  readonly #store: Store
  readonly #sandboxes = new Map<string, Sandbox>()
  readonly #context: ControllerContext
  readonly #options: KubeletOptions

  constructor(context: ControllerContext, options: KubeletOptions) {
    this.#context = context
    this.#options = options
    this.#store = context.registry.store
    this.#queue = new WorkQueue(component, (key) => this.#sync(key), context.log)
    this.#leave = this.#store.subscribe('pods', ({ key }) => this.#queue.add(key))
    for (const { key, object } of this.#store.list('pods')) {
      // Pods of an earlier run keep their addresses; none may go to a pod that is started before them.
      const had = ((object as Pod).status?.podIPs ?? []).map(({ ip }) => ip)
      if (had.length > 0) options.addresses.take(key, had)
      this.#queue.add(key)
    }
  }

  #sync(key: string): void {
    const pod = this.#store.get('pods', key)?.object as Pod | undefined
    const sandbox = this.#sandboxes.get(key)
    if (!pod || (sandbox && sandbox.uid !== pod.metadata.uid)) {
      if (sandbox) this.#stop(key, sandbox)
      if (pod) this.#queue.add(key)
      return
    }
    if (!pod.spec.nodeName || pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded') return
    if (pod.metadata.deletionTimestamp) this.#drain(key, pod, sandbox)
    else if (!sandbox) this.#start(key, pod)
    else if (sandbox.state === 'running') this.#report(key, pod, sandbox)
  }

  #start(key: string, pod: Pod): void {
    const { name, namespace } = splitKey(key)
    const had = (pod.status?.podIPs ?? []).map(({ ip }) => ip)
    const addresses = this.#options.addresses.take(key, had)
    const echo = this.#options.podServer({ pod: name, namespace, node: pod.spec.nodeName ?? '' })
    const readyAt = Date.now() + this.#options.readyDelayMs
    const sandbox: Sandbox = { uid: pod.metadata.uid ?? '', addresses, echo, state: 'starting', readyAt }
    this.#sandboxes.set(key, sandbox)
    this.#open(key, pod, sandbox, had.length === 0).then(
      () => this.#started(key, pod, sandbox),
      (error: unknown) => this.#failed(key, sandbox, error),
    )
  }

  /** Opens the ports. An address where another process has the port (a second playground, say) is left for the next one. */
  async #open(key: string, pod: Pod, sandbox: Sandbox, mayMove: boolean): Promise<void> {
    const { addresses } = this.#options
    for (let tries = 1; ; tries++) {
      try {
        await sandbox.echo.listen(sandbox.addresses, echoPorts(pod))
        return
      } catch (error) {
        const inUse = (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
        const next = mayMove && inUse && tries < mostMoves ? addresses.move(key) : undefined
        if (next === undefined) throw error
        sandbox.addresses = next
      }
    }
  }

  #started(key: string, pod: Pod, sandbox: Sandbox): void {
    if (sandbox.state === 'stopped') {
      // Deleted while its ports were being opened.
      void sandbox.echo.close().finally(() => {
        if (!this.#sandboxes.has(key)) this.#options.addresses.release(key)
      })
      return
    }
    sandbox.state = 'running'
    const ports = echoPorts(pod).map(({ port, protocol }) => `${port}/${protocol}`)
    this.#context.events.record(
      pod,
      'Normal',
      'Started',
      `The echo server answers on ${sandbox.addresses.join(', ')}, ports ${ports.join(', ')}`,
      component,
    )
    this.#queue.add(key)
    if (this.#options.readyDelayMs > 0) this.#queue.after(this.#options.readyDelayMs, key)
  }

  #failed(key: string, sandbox: Sandbox, error: unknown): void {
    const pod = this.#store.get('pods', key)?.object as Pod | undefined
    const why = bindProblem(error, sandbox.addresses[0] ?? '')
    this.#stop(key, sandbox)
    if (!pod || pod.metadata.uid !== sandbox.uid) return
    const message = `The pod ${key} cannot listen: ${why}.`
    this.#context.log.warn('A pod cannot listen', { pod: key, error, message: why })
    this.#context.events.record(pod, 'Warning', 'FailedToListen', message, component)
    this.#write(key, pod, failedStatus(pod, 'FailedToListen', message))
  }

  #report(key: string, pod: Pod, sandbox: Sandbox): void {
    const node = this.#store.get('nodes', pod.spec.nodeName ?? '')?.object as Node | undefined
    const hostIp = node?.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address ?? '127.0.0.1'
    this.#write(key, pod, runningStatus(pod, sandbox.addresses, hostIp, Date.now() >= sandbox.readyAt))
  }

  #write(key: string, pod: Pod, status: PodStatus): void {
    if (equal(pod.status, status)) return
    this.#store.put('pods', key, { ...clone(pod), status })
  }

  /** A pod that was deleted serves on until its grace period is over; then the object goes too. */
  #drain(key: string, pod: Pod, sandbox: Sandbox | undefined): void {
    const end = Date.parse(pod.metadata.deletionTimestamp ?? '')
    // Timestamps are whole seconds, cut off: the grace period itself is what was promised.
    const grace = (pod.metadata.deletionGracePeriodSeconds ?? 0) * 1000
    if (sandbox && sandbox.stopAt === undefined) {
      sandbox.stopAt = Date.now() + grace
      this.#context.events.record(
        pod,
        'Normal',
        'Killing',
        `Draining: the pod serves for ${grace / 1000} s more`,
        component,
      )
    }
    const left = (sandbox?.stopAt ?? end) - Date.now()
    if (left > 0) {
      this.#queue.after(left, key)
      return
    }
    if (sandbox) this.#stop(key, sandbox)
    if (!pod.metadata.finalizers?.length) this.#store.remove('pods', key)
  }

  #stop(key: string, sandbox: Sandbox): void {
    sandbox.state = 'stopped'
    this.#sandboxes.delete(key)
    void sandbox.echo.close().finally(() => this.#options.addresses.release(key))
  }

  async close(): Promise<void> {
    this.#leave()
    this.#queue.close()
    await Promise.all([...this.#sandboxes.values()].map(({ echo }) => echo.close()))
  }
}
