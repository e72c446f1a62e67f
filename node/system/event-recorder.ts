import { setTimeout as sleep } from 'node:timers/promises'
import { type Log, messageOf } from '@kpng/api'

/** The object that an Event is about. */
interface ObjectReference {
  readonly apiVersion: 'v1'
  readonly kind: 'Node' | 'Service'
  readonly name: string
  readonly namespace?: string
  readonly uid?: string
}

interface EventInit {
  readonly regarding: ObjectReference
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly action: string
  readonly note: string
}

export interface EventRecorderOptions {
  readonly nodeName: string
  /** Sends an object to the API server; rejects when it is not taken. */
  readonly post: (path: string, body: object) => Promise<unknown>
  readonly log: Log
  /** Ends waiting for the next try. */
  readonly signal: AbortSignal
  /** How often an Event is tried to be sent. Default 12, as in Kubernetes' own recorder. */
  readonly tries?: number
  /** The pause between. Default 10,000. */
  readonly retryMs?: number
  /** Unix time in milliseconds. Default Date.now. */
  readonly now?: () => number
}

/** Why a server could not be started, in kube-proxy's words. */
type ServerFailure = 'FailedToStartProxierHealthcheck' | 'FailedToStartMetricServer'

/** Records Events (events.k8s.io/v1). Never fails: an Event that cannot be sent is logged, and nothing waits for it. */
export class EventRecorder {
  readonly #options: EventRecorderOptions
  #sequence = 0

  constructor(options: EventRecorderOptions) {
    this.#options = options
  }

  /** The proxy of this node is up. */
  starting(): Promise<void> {
    return this.#onNode('Normal', 'Starting', '')
  }

  serverFailed(reason: ServerFailure, note: string): Promise<void> {
    return this.#onNode('Warning', reason, note)
  }

  /** For `HealthCheckNodePorts`' `onEvent`. */
  serviceFailed(event: {
    namespace: string
    name: string
    reason: string
    action: string
    note: string
  }): Promise<void> {
    const { namespace, name, reason, action, note } = event
    return this.record({
      regarding: { apiVersion: 'v1', kind: 'Service', namespace, name },
      type: 'Warning',
      reason,
      action,
      note,
    })
  }

  #onNode(type: EventInit['type'], reason: string, note: string): Promise<void> {
    const name = this.#options.nodeName
    // kubectl finds the Events of a node by its name as their uid.
    return this.record({
      regarding: { apiVersion: 'v1', kind: 'Node', name, uid: name },
      type,
      reason,
      action: 'StartKubeProxy',
      note,
    })
  }

  /** Resolves when it is sent, or given up. */
  async record(init: EventInit): Promise<void> {
    const { post, log, signal, tries = 12, retryMs = 10_000 } = this.#options
    const body = this.#body(init)
    for (let left = tries; left > 0 && !signal.aborted; left--) {
      try {
        await post(`/apis/events.k8s.io/v1/namespaces/${body.metadata.namespace}/events`, body)
        return
      } catch (error) {
        const fields = {
          reason: init.reason,
          object: `${init.regarding.kind} ${init.regarding.name}`,
          error: messageOf(error),
        }
        if (left > 1) log.detail(2, 'An Event could not be sent. It is tried again', fields)
        else log.warn('An Event could not be sent. Check that events.k8s.io/events may be created', fields)
        if (left > 1) await sleep(retryMs, undefined, { signal, ref: false }).catch(() => {})
      }
    }
  }

  #body({ regarding, type, reason, action, note }: EventInit) {
    const { nodeName, now = Date.now } = this.#options
    const nowMs = now()
    const stamp = (BigInt(Math.floor(nowMs)) * 1_000_000n + BigInt(this.#sequence++)).toString(16)
    return {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: `${regarding.name}.${stamp}`, namespace: regarding.namespace ?? 'default' },
      // A MicroTime: the API server refuses one without its six digits.
      eventTime: new Date(nowMs).toISOString().replace(/Z$/, '000Z'),
      reportingController: 'kpng',
      reportingInstance: `kpng-${nodeName}`.slice(0, 128),
      action,
      reason,
      regarding,
      // The API server refuses a longer one.
      note: note.slice(0, 1024),
      type,
    }
  }
}
