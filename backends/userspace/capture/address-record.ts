import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, win32 } from 'node:path'
import { type Log, messageOf, parseIp } from '@kpng/api'

/** `C:\\ProgramData\\kpng\\addresses.json`: where commands keep the record. A user who may change it can make kpng delete addresses. */
export const defaultStateFile = (): string =>
  win32.join(process.env.ProgramData ?? 'C:\\ProgramData', 'kpng', 'addresses.json')

/** The addresses that we added to the machine, kept in a file where there is one: a crash must not make them foreign. */
export class AddressRecord {
  readonly #file: string | undefined
  readonly #log: Log
  /** The interface that each was added to: a start with another one must still find them. */
  readonly #interfaces: Map<string, string>

  constructor(file: string | undefined, log: Log) {
    this.#file = file
    this.#log = log
    this.#interfaces = file === undefined ? new Map() : readInterfaces(file, log)
  }

  has(ip: string): boolean {
    return this.#interfaces.has(ip)
  }

  interfaceOf(ip: string): string | undefined {
    return this.#interfaces.get(ip)
  }

  all(): string[] {
    return [...this.#interfaces.keys()]
  }

  add(ip: string, interfaceName: string): void {
    this.#interfaces.set(ip, interfaceName)
    this.#write()
  }

  remove(ip: string): void {
    this.#interfaces.delete(ip)
    this.#write()
  }

  #write(): void {
    if (this.#file === undefined) return
    try {
      mkdirSync(dirname(this.#file), { recursive: true })
      writeFileSync(`${this.#file}.new`, `${JSON.stringify({ addresses: Object.fromEntries(this.#interfaces) })}\n`)
      renameSync(`${this.#file}.new`, this.#file)
    } catch (error) {
      this.#log.warn('The record of added addresses cannot be written: after a crash they would stay', {
        file: this.#file,
        error: messageOf(error),
      })
    }
  }
}

function readInterfaces(file: string, log: Log): Map<string, string> {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    return new Map()
  }
  try {
    const { addresses } = JSON.parse(text) as { addresses?: Record<string, unknown> }
    return new Map(
      Object.entries(addresses ?? {}).flatMap(([ip, name]) =>
        parseIp(ip) !== undefined && typeof name === 'string' ? [[ip, name]] : [],
      ),
    )
  } catch (error) {
    log.warn('The record of added addresses cannot be read and is begun anew', { file, error: messageOf(error) })
    return new Map()
  }
}
