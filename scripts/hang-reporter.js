// A reporter for vitest. If a test file makes no progress for a long time, it prints which file it is, what it was doing and what its
// process waits for, and ends the run. Tests and hooks have time limits of their own; the loading of a file has none.
import { readdirSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'

export default class HangReporter {
  /** By module ID: what it does, and since when. */
  #running = new Map()
  #limitMs
  #timer

  /** @param options limitMs: longer than any time limit of a test or a hook */
  constructor({ limitMs = 35 * 60_000, checkEveryMs = 5000 } = {}) {
    this.#limitMs = limitMs
    this.#timer = setInterval(() => this.#check(), checkEveryMs)
    this.#timer.unref()
  }

  onTestModuleQueued = (module) => this.#note(module, 'loading the file')
  onTestModuleCollected = (module) => this.#note(module, 'between tests')
  onTestCaseReady = (test) => this.#note(test.module, `in the test "${test.fullName}"`)
  onTestCaseResult = (test) => this.#note(test.module, 'between tests')
  onTestModuleEnd = (module) => this.#running.delete(module.moduleId)
  onTestRunEnd = () => clearInterval(this.#timer)

  #note(module, doing) {
    this.#running.set(module.moduleId, { doing, since: performance.now() })
  }

  #check() {
    const hung = [...this.#running].filter(([, { since }]) => performance.now() - since > this.#limitMs)
    if (hung.length === 0) return
    for (const [file, { doing }] of hung) {
      const seconds = Math.round(this.#limitMs / 1000)
      console.error(`\n${relative(process.cwd(), file)} made no progress for ${seconds} s, ${doing}.`)
    }
    for (const worker of workersOf(process.pid)) {
      console.error(describe(worker))
      process.kill(worker, 'SIGKILL')
    }
    process.exit(1)
  }
}

/** The vitest workers that a process has started. None where there is no /proc. */
function workersOf(parent) {
  let pids = []
  try {
    pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  } catch {}
  return pids.map(Number).filter((pid) => {
    const stat = read(`/proc/${pid}/stat`)
    const parentOf = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
    return parentOf === parent && read(`/proc/${pid}/cmdline`).includes('vitest')
  })
}

/** The state of each of its threads in the kernel: whether it runs (R) or sleeps (S), and in which function. */
function describe(pid) {
  const threads = readdirSync(`/proc/${pid}/task`).map((thread) => {
    const folder = `/proc/${pid}/task/${thread}`
    const state = /^State:\s*(.*)$/m.exec(read(`${folder}/status`))?.[1] ?? 'gone'
    return `${read(`${folder}/comm`).trim()}: ${state} ${read(`${folder}/wchan`)}`
  })
  return `Worker ${pid}:\n  ${threads.join('\n  ')}`
}

function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
