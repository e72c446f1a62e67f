import { type ChildProcess, spawn } from 'node:child_process'
import { KpngError } from '@kpng/api'

const linesKept = 40

/** The proxy under test: a process in node-a's namespace. */
export class ProxyProcess {
  readonly #process: ChildProcess
  readonly #closed: Promise<void>
  readonly #lines: string[] = []
  #ended: string | undefined
  #stopping = false

  private constructor(process: ChildProcess) {
    this.#process = process
    this.#closed = new Promise((resolve) => {
      process.on('error', (error) => {
        this.#ended = error.message
        resolve()
      })
      process.on('close', (code, signal) => {
        this.#ended ??= signal ? `ended by ${signal}` : `ended with code ${code}`
        resolve()
      })
    })
    for (const stream of [process.stdout, process.stderr]) stream?.on('data', (chunk) => this.#keep(String(chunk)))
  }

  static start(command: readonly string[], namespace: string): ProxyProcess {
    const args = ['netns', 'exec', namespace, ...command]
    return new ProxyProcess(spawn('ip', args, { stdio: ['ignore', 'pipe', 'pipe'] }))
  }

  /** How it ended, unless it runs or was stopped by us. */
  get ended(): string | undefined {
    return this.#stopping ? undefined : this.#ended
  }

  /** The last lines it said. */
  get said(): string {
    return this.#lines.join('\n')
  }

  get closed(): Promise<void> {
    return this.#closed
  }

  /** Lets it end in its own way for two seconds. */
  async stop(): Promise<void> {
    this.#stopping = true
    if (this.#ended !== undefined) return
    this.#process.kill('SIGTERM')
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), 2000)
    await this.#closed
    clearTimeout(timer)
  }

  #keep(text: string): void {
    this.#lines.push(...text.split('\n').filter((line) => line !== ''))
    this.#lines.splice(0, this.#lines.length - linesKept)
  }
}

/** Puts values in the places that are written as `{name}`. */
export function fillPlaceholders(
  command: readonly string[],
  values: Readonly<Record<string, string | undefined>>,
): string[] {
  return command.map((part) =>
    part.replace(/\{([A-Za-z]+)\}/g, (whole, name: string) => {
      if (!Object.hasOwn(values, name)) return whole
      const value = values[name]
      if (value === undefined) {
        throw new KpngError('usage', `The proxy command has ${whole}, which this way of feeding does not give.`)
      }
      return value
    }),
  )
}

/** A command line as a list: words apart by spaces, with quotes where a word has some. No shell is involved. */
export function splitCommand(text: string): string[] {
  const words: string[] = []
  let word: string | undefined
  let quote = ''
  for (const character of text) {
    if (quote !== '') {
      if (character === quote) quote = ''
      else word += character
    } else if (character === '"' || character === "'") {
      quote = character
      word ??= ''
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = (word ?? '') + character
  }
  if (quote !== '') throw new KpngError('usage', `The command ${JSON.stringify(text)} has a quote that does not end.`)
  if (word !== undefined) words.push(word)
  return words
}
