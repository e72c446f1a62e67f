import { expect, it } from 'vitest'
import { loadTcp } from './index.js'
import { maxPipes, type Pipe, Pipes } from './pipes.js'

const F_GETPIPE_SZ = 1032

it.runIf(process.platform === 'linux')(
  'pipes of stalled receivers have a limit, and come back when they are discarded',
  async () => {
    const calls = await loadTcp()
    let files = 0
    const pipes = new Pipes(calls, (count) => {
      files += count
    })
    const taken: Pipe[] = []
    try {
      for (let pipe = pipes.take(); pipe; pipe = pipes.take()) taken.push(pipe)
      expect(taken).toHaveLength(maxPipes)
      const bytes = taken.reduce((sum, { into }) => sum + calls.fcntl(into, F_GETPIPE_SZ, 0), 0)
      expect(bytes).toBeLessThanOrEqual(92 * 1024 * 1024)
      pipes.discard(taken.pop() as Pipe)
      taken.push(pipes.take() as Pipe)
      expect(pipes.take()).toBeUndefined()
    } finally {
      for (const pipe of taken) pipes.discard(pipe)
    }
    expect(files).toBe(0)
  },
)
