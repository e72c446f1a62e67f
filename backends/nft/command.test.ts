import { describe, expect, test } from 'vitest'
import { runCommand } from './command.js'

describe('a command', () => {
  test('says what it printed, and how it ended', async () => {
    expect(await runCommand('sh', ['-c', 'cat; echo oops >&2; exit 3'], 'input')).toEqual({
      ...{ code: 3, output: 'input', errors: 'oops' },
    })
  })

  test('that hangs is killed, and the error says so', async () => {
    const startedMs = performance.now()
    // What it starts holds its pipes open beyond its end.
    const hanging = runCommand('sh', ['-c', 'sleep 5 & wait'], '', 200)
    await expect(hanging).rejects.toThrow(
      'The command "sh -c sleep 5 & wait" did not end within 0.2 s and was killed. It is tried again; run it by hand to see what it waits for.',
    )
    expect(performance.now() - startedMs).toBeLessThan(3000)
  })

  test('that cannot be run is named', async () => {
    await expect(runCommand('/nowhere/nft', [])).rejects.toThrow(
      /The command "\/nowhere\/nft" cannot be run: .*ENOENT.*Install it, or name its path\./,
    )
  })
})
