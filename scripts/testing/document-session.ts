import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type DocumentCommand, exclusiveKey } from './document-commands.js'
import { isPrinted } from './document-output.js'

/** No command of a document takes half as long, even on a busy machine. */
const limitMs = 60_000
/** Commands may need what one that runs beside them is still doing: they are tried again for so long. */
const retryMs = 15_000

// One shell for a whole page, so that `cd` and `export` work as for the reader. It reads three texts ending in NUL (what to do, where the
// output goes, the command) and answers with a number: an exit code, or the id of a process that was started. What is stopped has ended with all its
// children: npm ends before the server that it started, which may still listen.
const shell = `
set -o pipefail
while IFS= read -r -d '' what && IFS= read -r -d '' output && IFS= read -r -d '' text; do
  case $what in
    run) eval "$text" </dev/null >"$output" 2>"$output.errors"; code=$? ;;
    start) set -m; eval "$text" </dev/null >"$output" 2>"$output.errors" & code=$!; set +m ;;
    alive) kill -0 "$text" 2>/dev/null; code=$? ;;
    stop) kill -TERM -- "-$text" 2>/dev/null; wait "$text" 2>/dev/null; code=$?
      while kill -0 -- "-$text" 2>/dev/null; do sleep 0.05; done ;;
  esac
  echo "$code"
done`

interface Server {
  readonly command: DocumentCommand
  readonly pid: number
  readonly output: string
}

/** Runs the commands of one page, in order, and collects what failed. */
export class DocumentSession {
  readonly faults: string[] = []
  readonly #path: string
  readonly #folder: string
  readonly #shell: ChildProcess
  readonly #servers = new Map<string, Server>()
  #answers = ''
  #ended = false
  #outputs = 0

  /** `surroundings` is a command line that runs a shell where the page's commands may do no harm. */
  constructor(path: string, folder: string, surroundings: readonly string[], env: NodeJS.ProcessEnv) {
    this.#path = path
    this.#folder = folder
    const [program = '', ...args] = [...surroundings, 'bash', '-c', shell]
    this.#shell = spawn(program, args, { cwd: folder, env, stdio: ['pipe', 'pipe', 'inherit'], detached: true })
    this.#shell.stdout?.on('data', (chunk) => {
      this.#answers += chunk
    })
    this.#shell.on('exit', () => {
      this.#ended = true
    })
    this.#shell.stdin?.on('error', () => {})
  }

  async run(command: DocumentCommand): Promise<void> {
    if (this.#ended) return
    if (command.untilStopped) return await this.#start(command)
    const deadline = Date.now() + retryMs
    for (;;) {
      const output = this.#nextOutput()
      const code = await this.#ask('run', output, command.text)
      const { exitCode = 0 } = command
      // 141: the reader of a pipe (head) has seen enough.
      const ended = code === exitCode || (exitCode === 0 && code === 141)
      if (ended && isAsShown(command, output)) return
      if (code === undefined)
        return this.#fault(command, `did not end within ${limitMs / 1000} s. ${untilStoppedHint}`, output)
      if (this.#servers.size === 0 || Date.now() > deadline)
        return ended
          ? this.#otherOutput(command, output)
          : this.#fault(command, `ended with exit code ${code}${exitCode === 0 ? '' : `, not ${exitCode}`}.`, output)
      await sleep(200)
    }
  }

  /** Stops what is still running, and the shell. */
  async close(): Promise<void> {
    for (const key of [...this.#servers.keys()].reverse()) await this.#stop(key)
    this.#shell.stdin?.end()
    if (this.#shell.exitCode !== null || this.#shell.signalCode !== null) return
    await new Promise((resolve) => this.#shell.once('exit', resolve))
  }

  async #start(command: DocumentCommand): Promise<void> {
    const key = exclusiveKey(command.text)
    await this.#stop(key)
    const output = this.#nextOutput()
    const pid = await this.#ask('start', output, command.text)
    if (pid === undefined) return this.#fault(command, 'could not be started.', output)
    this.#servers.set(key, { command, pid, output })
    const deadline = Date.now() + limitMs
    while (!isUp(command, output, this.#folder) || !isAsShown(command, output)) {
      if ((await this.#ask('alive', '/dev/null', String(pid))) !== 0) {
        this.#servers.delete(key)
        const code = await this.#ask('stop', '/dev/null', String(pid))
        if (code !== 0) this.#fault(command, `ended by itself with exit code ${code}.`, output)
        return
      }
      if (Date.now() > deadline)
        return isUp(command, output, this.#folder)
          ? this.#otherOutput(command, output)
          : this.#fault(command, `said nothing for ${limitMs / 1000} s.`, output)
      await sleep(50)
    }
  }

  async #stop(key: string): Promise<void> {
    const server = this.#servers.get(key)
    if (!server) return
    this.#servers.delete(key)
    const code = await this.#ask('stop', '/dev/null', String(server.pid))
    // 143: a program beside kpng, such as jq, was ended by the same SIGTERM.
    if (code !== 0 && code !== 143 && code !== 141)
      this.#fault(server.command, `ended with exit code ${code} when it was stopped.`, server.output)
  }

  /** What the shell answers; undefined if it does not, in which case it is gone afterwards. */
  async #ask(what: string, output: string, text: string): Promise<number | undefined> {
    this.#answers = ''
    this.#shell.stdin?.write(`${what}\0${output}\0${text}\0`)
    const deadline = Date.now() + limitMs
    while (!this.#answers.includes('\n') && !this.#ended && Date.now() < deadline) await sleep(10)
    if (this.#answers.includes('\n')) return Number(this.#answers)
    if (!this.#ended && this.#shell.pid !== undefined) process.kill(-this.#shell.pid, 'SIGKILL')
    this.#ended = true
    return undefined
  }

  #nextOutput = (): string => join(this.#folder, `.output-${++this.#outputs}`)

  #otherOutput({ line, text }: DocumentCommand, output: string): void {
    this.faults.push(
      [
        `${this.#path}:${line}: does not print what the block below it shows, but:`,
        `  $ ${text}`,
        read(output).trimEnd(),
      ].join('\n'),
    )
  }

  #fault({ line, text }: DocumentCommand, what: string, output: string): void {
    const errors = read(`${output}.errors`).trim() || read(output).trim()
    const last = errors
      .split('\n')
      .slice(-6)
      .map((said) => `    ${said}`)
    this.faults.push([`${this.#path}:${line}: ${what}`, `  $ ${text.replaceAll('\n', '\n    ')}`, ...last].join('\n'))
  }
}

const untilStoppedHint = 'If it runs until it is stopped, write <!-- runs until stopped --> above the block.'

const read = (file: string): string => (existsSync(file) ? readFileSync(file, 'utf8') : '')

const isAsShown = ({ shown }: DocumentCommand, output: string): boolean =>
  shown === undefined || isPrinted(shown, read(output))

/** Whether a command that goes on has done what it is for: it printed something, logged that it is ready, or wrote its file. */
function isUp({ text }: DocumentCommand, output: string, folder: string): boolean {
  const file = /to-file\b.*(?:-o|--output)[ =](\S+)/.exec(text)?.[1]
  if (file !== undefined) return existsSync(join(folder, file)) || existsSync(file)
  // npm prints lines with > before it does anything.
  if (
    read(output)
      .split('\n')
      .some((line) => line.trim() !== '' && !line.startsWith('>'))
  )
    return true
  return read(`${output}.errors`)
    .split('\n')
    .some((line) => line.startsWith('I') && !/Watching|Listed|kernel setting/.test(line))
}
