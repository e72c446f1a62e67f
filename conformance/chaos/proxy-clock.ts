import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Read by the proxy's own process, before its program. Timers and performance.now() stay as they are, as when the clock of a machine is set. */
const script = (offset: string) => `import { readFileSync } from 'node:fs'
const realNow = Date.now
let offsetMs = 0
const look = () => {
  try {
    offsetMs = Number(readFileSync(${JSON.stringify(offset)}, 'utf8'))
  } catch {}
}
look()
setInterval(look, 50).unref()
const now = () => realNow() + offsetMs
globalThis.Date = new Proxy(Date, {
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
  construct: (target, given, made) => Reflect.construct(target, given.length === 0 ? [now()] : given, made),
  apply: () => new Date(now()).toString(),
})
`

/** The wall clock of a proxy, which can jump. It works for a proxy that runs in Node; any other keeps the clock of the machine. */
export class ProxyClock {
  /** For the environment of the proxy. */
  readonly env: Readonly<Record<string, string>>
  readonly #offset: string

  constructor(folder: string) {
    this.#offset = join(folder, 'offset')
    const path = join(folder, 'clock.mjs')
    writeFileSync(path, script(this.#offset))
    this.jumpTo(0)
    this.env = { NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import "${pathToFileURL(path)}"`.trim() }
  }

  /** From now on the proxy sees the time of the machine with this offset. */
  jumpTo(offsetMs: number): void {
    // Renamed, so that no half-written number is read.
    writeFileSync(`${this.#offset}.new`, String(offsetMs))
    renameSync(`${this.#offset}.new`, this.#offset)
  }
}
