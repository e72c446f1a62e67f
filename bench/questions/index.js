import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { askAgent } from '@kpng/node/agent-api'

// How long people wait for the answers of a kpng with many Services. Prints the shortest and the median of some runs, in ms:
// the whole command, and the request to the agent API alone. The first line is a command that asks nothing.

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '10000' },
    endpoints: { type: 'string', default: '10' },
    runs: { type: 'string', default: '9' },
    kpng: { type: 'string', default: fileURLToPath(new URL('../../cli/bin/kpng.js', import.meta.url)) },
  },
})
const runs = Number(values.runs)
const folder = mkdtempSync(join(tmpdir(), 'kpng-bench-'))
const socket = join(folder, 'agent.sock')
const server = spawn(
  process.execPath,
  [fileURLToPath(new URL('server.js', import.meta.url)), socket, values.services, values.endpoints],
  { stdio: ['ignore', 'pipe', 'inherit'] },
)

const questions = [
  [['completion', 'bash']],
  [['status', '--agent-socket', socket], '/v1/status'],
  [['explain', 'service-5000', '--agent-socket', socket], '/v1/explain?what=service-5000'],
  [['explain', '10.96.19.136:80', '--agent-socket', socket], '/v1/explain?what=10.96.19.136:80'],
  [['get', 'services', '-A', '--agent-socket', socket], '/v1/services'],
  [['get', 'endpoints', '-A', '--agent-socket', socket], '/v1/endpoints'],
  [['get', 'frontends', '-A', '--agent-socket', socket], '/v1/frontends'],
]

async function timed(work) {
  const times = []
  // The first run fills caches: of files, and of the agent's compiler.
  for (let run = 0; run <= runs; run++) {
    const start = performance.now()
    await work()
    if (run > 0) times.push(performance.now() - start)
  }
  times.sort((a, b) => a - b)
  return `${times[0].toFixed(0)} (${times[times.length >> 1].toFixed(0)})`
}

try {
  await once(server.stdout, 'data')
  const words = values.kpng.endsWith('.js') ? [process.execPath, values.kpng] : [values.kpng]
  console.log(`${values.services} services of ${values.endpoints} endpoints, ${runs} runs: shortest (median), ms`)
  for (const [question, path] of questions) {
    const whole = await timed(() => {
      const { status, error } = spawnSync(words[0], [...words.slice(1), ...question], { maxBuffer: 2 ** 30 })
      if (error || status === null || status > 1) throw new Error(`${question.join(' ')} failed`, { cause: error })
    })
    const api = path === undefined ? '-' : await timed(() => askAgent(socket, path))
    console.log(`${question.slice(0, 2).join(' ').padEnd(28)} command ${whole.padEnd(14)} request ${api}`)
  }
} finally {
  server.kill()
  rmSync(folder, { recursive: true, force: true })
}
