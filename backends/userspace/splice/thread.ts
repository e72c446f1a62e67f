import { Worker } from 'node:worker_threads'
import { KpngError, type Log, messageOf } from '@kpng/api'
import type { ConnectionRecord } from '@kpng/client'
import { type TcpSyscalls, Wake } from '@kpng/linux/tcp'
import type { Report, Request, WorkerData, WorkerMethods } from './messages.js'

export interface ThreadOptions {
  readonly calls: TcpSyscalls
  /** The script of the thread. */
  readonly script: URL
  readonly data: Omit<WorkerData, 'wake'>
  readonly log: Log
  readonly connectionEnded: (record: ConnectionRecord) => void
}

type Answer<M extends keyof WorkerMethods> = Awaited<ReturnType<WorkerMethods[M]>>

/** More than a thread needs to end its connections and itself. */
const endingMs = 5000

/** One thread that forwards, seen from the main thread. */
export class Thread {
  readonly #worker: Worker
  readonly #wake: Wake
  readonly #waiting = new Map<number, (value: unknown) => void>()
  readonly #log: Log
  readonly #connectionEnded: ThreadOptions['connectionEnded']
  #lastId = 0
  #over: Promise<void> | undefined

  private constructor(worker: Worker, wake: Wake, options: ThreadOptions) {
    this.#worker = worker
    this.#wake = wake
    this.#log = options.log
    this.#connectionEnded = options.connectionEnded
  }

  /** Resolves when the thread takes calls. */
  static async start(options: ThreadOptions): Promise<Thread> {
    const wake = new Wake(options.calls)
    const workerData: WorkerData = { ...options.data, wake: wake.fd }
    const worker = new Worker(options.script, { name: 'kpng-splice', workerData, stdout: false, stderr: false })
    const thread = new Thread(worker, wake, options)
    await new Promise<void>((resolve, reject) => {
      worker.once('error', reject)
      worker.once('exit', (code) => reject(new Error(`it ended with code ${code}`)))
      worker.on('message', (report: Report) => (report.is === 'ready' ? resolve() : thread.#take(report)))
    })
    worker.removeAllListeners('error').removeAllListeners('exit')
    worker.on('error', (error) => thread.#ended(messageOf(error)))
    worker.on('exit', (code) => thread.#ended(`it ended with code ${code}`))
    return thread
  }

  /** Calls a method, without an answer. */
  tell<M extends keyof WorkerMethods>(method: M, ...args: Parameters<WorkerMethods[M]>): void {
    if (!this.#over) this.#post({ method, args })
  }

  ask<M extends keyof WorkerMethods>(method: M, ...args: Parameters<WorkerMethods[M]>): Promise<Answer<M>> {
    if (this.#over) return this.#over.then(() => undefined as Answer<M>)
    const id = ++this.#lastId
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve as (value: unknown) => void)
      this.#post({ method, args, id })
    })
  }

  close(): Promise<void> {
    this.#over ??= new Promise((resolve) => {
      const timer = setTimeout(() => void this.#worker.terminate(), endingMs)
      this.#worker.once('exit', () => {
        clearTimeout(timer)
        // Nobody will answer any more.
        for (const answer of this.#waiting.values()) answer(undefined)
        resolve()
      })
      this.#post({ method: 'close', args: [] })
    })
    return this.#over
  }

  #post(request: Request): void {
    this.#worker.postMessage(request)
    this.#wake.now()
  }

  #take(report: Report): void {
    if (report.is === 'answer') {
      this.#waiting.get(report.id)?.(report.value)
      this.#waiting.delete(report.id)
    } else if (report.is === 'ended') this.#connectionEnded(report.record)
    else if (report.is === 'log') {
      const { level, message, fields } = report
      if (typeof level === 'number') this.#log.detail(level, message, fields)
      else this.#log[level](message, fields)
    }
  }

  /** Without its threads a proxy is of no use: the process ends, and is started again by its supervisor. */
  #ended(reason: string): void {
    if (this.#over) return
    throw new KpngError(
      'unavailable',
      `A thread that forwards TCP connections has ended unexpectedly: ${reason}. Start kpng again, and report this.`,
    )
  }
}
