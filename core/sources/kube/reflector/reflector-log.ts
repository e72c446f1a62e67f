import type { Log, LogFields } from '@kpng/api'
import type { Failure } from './failure.js'

export type ReflectorState = 'LISTING' | 'WATCHING' | 'WAITING' | 'ABSENT' | 'STOPPED'

/** What a reflector logs: a failure once and not with every retry, the end of it, and, as a detail, each change of state. */
export class ReflectorLog {
  readonly #log: Log
  readonly #resource: string
  #state: ReflectorState | undefined
  #failure = ''

  constructor(log: Log, resource: string) {
    this.#log = log
    this.#resource = resource
  }

  enter(state: ReflectorState, fields: LogFields = {}): void {
    if (state === this.#state) return
    this.detail(2, 'A reflector changed its state', { from: this.#state, to: state, ...fields })
    this.#state = state
  }

  failed({ level, message, fields }: Failure): void {
    const text = JSON.stringify([message, fields])
    if (level === 'detail' || text === this.#failure) {
      this.#log.detail(1, message, fields)
      return
    }
    this.#failure = text
    this.#log[level](message, fields)
  }

  watching(resourceVersion: string | undefined): void {
    this.enter('WATCHING', { resourceVersion })
    if (this.#failure === '') return
    this.#failure = ''
    this.#log.info('Kubernetes can be read again', { resource: this.#resource })
  }

  listed(objects: number, by: 'stream' | 'pages', tookMs: number): void {
    this.#log.info('Listed', { resource: this.#resource, objects, by, seconds: Math.round(tookMs) / 1000 })
  }

  detail(level: number, message: string, fields: LogFields = {}): void {
    this.#log.detail(level, message, { resource: this.#resource, ...fields })
  }
}
