import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Log, messageOf } from '@kpng/api'
import { parseIp } from '../address.js'

/** The addresses that we added to the machine, kept in a file where there is one: a crash must not make them foreign. */
export class AddressRecord {
  readonly #file: string | undefined
  readonly #log: Log
  readonly #addresses = new Set<string>()

  constructor(file: string | undefined, log: Log) {
    this.#file = file
    this.#log = log
    if (file !== undefined) for (const ip of readAddresses(file, log)) this.#addresses.add(ip)
  }

  has(ip: string): boolean {
    return this.#addresses.has(ip)
  }

  all(): string[] {
    return [...this.#addresses]
  }

  add(ip: string): void {
    this.#addresses.add(ip)
    this.#write()
  }

  remove(ip: string): void {
    this.#addresses.delete(ip)
    this.#write()
  }

  #write(): void {
    if (this.#file === undefined) return
    try {
      mkdirSync(dirname(this.#file), { recursive: true })
      writeFileSync(`${this.#file}.new`, `${JSON.stringify({ addresses: this.all() })}\n`)
      renameSync(`${this.#file}.new`, this.#file)
    } catch (error) {
      this.#log.warn('The record of added addresses cannot be written: after a crash they would stay', {
        file: this.#file,
        error: messageOf(error),
      })
    }
  }
}

function readAddresses(file: string, log: Log): string[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    return []
  }
  try {
    const { addresses } = JSON.parse(text) as { addresses?: unknown }
    return (Array.isArray(addresses) ? addresses : []).filter(
      (ip) => typeof ip === 'string' && parseIp(ip) !== undefined,
    )
  } catch (error) {
    log.warn('The record of added addresses cannot be read and is begun anew', { file, error: messageOf(error) })
    return []
  }
}
