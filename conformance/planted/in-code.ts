import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

/** A fault in kpng's own code: a text in a compiled file, what stands there instead, and the cases that see it. */
export interface FaultInCode {
  readonly name: string
  readonly file: string
  readonly find: string
  readonly put: string
  readonly only: readonly string[]
}

/** The faults that a checkout of kpng has in its list. */
export const faultsIn = (checkout: string): FaultInCode[] =>
  JSON.parse(readFileSync(join(checkout, 'conformance', 'planted', 'in-code.json'), 'utf8')) as FaultInCode[]

const unwanted = new Set([
  ...['node_modules', '.git', 'docs', 'bench', 'deploy'],
  ...['examples', 'scripts', 'testing', 'results'],
])

/** A copy of a built checkout in which faults are planted. */
export class FaultyCopy {
  readonly #folder = mkdtempSync(join(tmpdir(), 'kpng-planted-'))
  readonly #remove = () => rmSync(this.#folder, { recursive: true, force: true })

  /** The packages, without sources and tests. Links between packages are relative, so they lead to the copies. */
  constructor(checkout: string) {
    process.once('exit', this.#remove)
    cpSync(checkout, this.#folder, {
      recursive: true,
      filter: (path) => !unwanted.has(basename(path)) && !/\.(ts|map|md)$/.test(path),
    })
    const [modules, copied] = [join(checkout, 'node_modules'), join(this.#folder, 'node_modules')]
    mkdirSync(copied)
    for (const name of readdirSync(modules)) {
      if (['@kpng', 'kpng'].includes(name)) {
        cpSync(join(modules, name), join(copied, name), { recursive: true, verbatimSymlinks: true })
      } else if (name !== '.bin') symlinkSync(join(modules, name), join(copied, name))
    }
  }

  /** How its kpng is called. */
  get kpng(): string[] {
    return [process.execPath, join(this.#folder, 'cli', 'bin', 'kpng.js')]
  }

  /** Does something while a fault is planted. The text must be there exactly once, so that a fault that no longer applies is noticed. */
  async with<T>({ file, find, put }: FaultInCode, work: () => Promise<T>): Promise<T | 'not applied'> {
    const path = join(this.#folder, file)
    const text = readFileSync(path, 'utf8')
    if (text.split(find).length !== 2) return 'not applied'
    writeFileSync(
      path,
      text.replace(find, () => put),
    )
    try {
      return await work()
    } finally {
      writeFileSync(path, text)
    }
  }

  remove(): void {
    process.off('exit', this.#remove)
    this.#remove()
  }
}
