import { mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { WriteStream } from 'node:tty'

// What the live screen does to a terminal. It uses the alternate screen, so that what was there before comes back at the end.

const enter = '\x1b[?1049h\x1b[?25l\x1b[2J'
const leave = '\x1b[?25h\x1b[?1049l'

/** Lines of standard error go here while the screen is up. */
export class LogFile {
  readonly path = join(mkdtempSync(join(tmpdir(), `kpng-log-${process.pid}-`)), 'kpng.log')
  readonly #file = openSync(this.path, 'wx', 0o600)
  /** The last warning or error, without its time. */
  lastWarning: string | undefined

  write(text: string): void {
    writeSync(this.#file, text)
    const warnings = text.split('\n').filter((line) => /^[WE]\d{4} /.test(line))
    this.lastWarning = warnings.at(-1)?.replace(/^\S+ \S+ /, '') ?? this.lastWarning
  }

  remove(): void {
    rmSync(dirname(this.path), { recursive: true, force: true })
  }
}

/** States: *up*, *suspended* by Ctrl-Z, *closed*. */
export class Terminal {
  readonly #out: WriteStream
  readonly #draw: (columns: number, rows: number) => string
  readonly #writeError = process.stderr.write
  #shown: string[] = []
  #isUp = false

  /** @param draw the whole screen for a size */
  constructor(out: WriteStream, log: LogFile, draw: (columns: number, rows: number) => string) {
    this.#out = out
    this.#draw = draw
    // Everything that is written there, also by Node itself, would otherwise land in the middle of the screen.
    process.stderr.write = (text: string | Uint8Array) => {
      log.write(typeof text === 'string' ? text : Buffer.from(text).toString('utf8'))
      return true
    }
    this.#up()
    out.on('resize', this.#redraw)
    process.on('SIGTSTP', this.#suspend)
    process.on('SIGCONT', this.#up)
    process.once('exit', this.close)
  }

  /** Writes the lines that differ: what somebody selects with the mouse stays selected. */
  update(): void {
    if (!this.#isUp) return
    // Terminals that do not know their size say 0.
    const lines = this.#draw(this.#out.columns || 80, this.#out.rows || 24).split('\n')
    let text = ''
    for (let row = 0; row < Math.max(lines.length, this.#shown.length); row++) {
      if (lines[row] !== this.#shown[row]) text += `\x1b[${row + 1};1H\x1b[2K${lines[row] ?? ''}`
    }
    this.#shown = lines
    if (text !== '') this.#out.write(text)
  }

  /** Gives the terminal back as it was. May be called twice. */
  readonly close = (): void => {
    this.#out.off('resize', this.#redraw)
    process.off('SIGTSTP', this.#suspend)
    process.off('SIGCONT', this.#up)
    process.off('exit', this.close)
    process.stderr.write = this.#writeError
    this.#down()
  }

  readonly #redraw = (): void => {
    this.#shown = []
    if (this.#isUp) this.#out.write('\x1b[2J')
    this.update()
  }

  readonly #up = (): void => {
    if (!this.#isUp) this.#out.write(enter)
    this.#isUp = true
    this.#redraw()
  }

  readonly #down = (): void => {
    if (this.#isUp) this.#out.write(leave)
    this.#isUp = false
  }

  readonly #suspend = (): void => {
    this.#down()
    process.kill(process.pid, 'SIGSTOP')
  }
}

export const wantsColours = (out: WriteStream): boolean => !process.env.NO_COLOR && out.hasColors()
