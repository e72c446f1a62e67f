import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KpngError } from '@kpng/api'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isMissingProgram, outputOf, runProgram } from './program.js'
import { runWithoutDescriptors, useUpDescriptors } from './testing/bundle.js'

const limitMs = 90_000

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'kpng-program-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A loop of a shell until there is a file, or until the test is over and its folder is gone. */
const waitFor = (folder: string, file: string): string =>
  `while [ -d ${folder} ] && [ ! -e ${folder}/${file} ]; do sleep 0.05; done`

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe('a program', () => {
  test('reads its input; what it printed and how it ended is the result', async () => {
    expect(await runProgram('sh', ['-c', 'cat; echo oops >&2; exit 3'], { input: 'input\n', limitMs })).toEqual({
      ...{ code: 3, output: 'input\n', errors: 'oops' },
    })
  })

  test('is not run by a shell', async () => {
    expect(await outputOf('echo', ['$HOME; exit 3 | cat'], { limitMs })).toBe('$HOME; exit 3 | cat\n')
  })

  test('has the environment that it is given', async () => {
    const env = { ...process.env, KPNG_TEST: 'yes' }
    expect(await outputOf('sh', ['-c', 'echo $KPNG_TEST'], { limitMs, env })).toBe('yes\n')
  })

  test('that a signal ended has the code that a shell would give', async () => {
    expect(await runProgram('sh', ['-c', 'kill -KILL $$'], { limitMs })).toMatchObject({ code: 137 })
  })

  test('may end without reading its input, however long that is', async () => {
    const input = 'x'.repeat(5_000_000)
    expect(await runProgram('sh', ['-c', 'exit 4'], { input, limitMs })).toMatchObject({ code: 4 })
  })

  test('may print much', async () => {
    const { output } = await runProgram('sh', ['-c', 'seq 1 300000'], { limitMs })
    expect(output.trim().split('\n')).toHaveLength(300_000)
  })

  test('is not waited for longer because something that it left running holds its pipes', async () => {
    const folder = newFolder()
    const script = `echo done; (${waitFor(folder, 'stop')}) & echo $! > ${folder}/pid`
    expect(await runProgram('sh', ['-c', script], { limitMs })).toMatchObject({ code: 0, output: 'done\n' })
    expect(isAlive(Number(readFileSync(join(folder, 'pid'), 'utf8')))).toBe(true)
    writeFileSync(join(folder, 'stop'), '')
  })

  test('that fails is an error with what it said, for those who want its output', async () => {
    const failing = outputOf('sh', ['-c', 'echo "no such table" >&2; exit 1'], { limitMs })
    await expect(failing).rejects.toThrow('`sh -c echo "no such table" >&2; exit 1` failed: no such table')
    await expect(outputOf('false', [], { limitMs })).rejects.toThrow('`false` failed: it ended with code 1')
  })

  test('that prints more than it may is ended', async () => {
    const endless = runProgram('sh', ['-c', 'while :; do echo y; done'], { limitMs, maxOutputBytes: 100_000 })
    await expect(endless).rejects.toThrow('printed more than 100000 bytes and was killed.')
  })
})

describe('a program that takes too long', () => {
  test('is ended, even if it ignores SIGTERM, and never counts as success', async () => {
    const folder = newFolder()
    // A loop of its own: a signal to the shell does not end what the shell waits for.
    const script = `trap '' TERM; echo $$ > ${folder}/pid; ${waitFor(folder, 'stop')}; exit 0`
    const hanging = runProgram('sh', ['-c', script], { limitMs: 1000 })
    await expect(hanging).rejects.toThrow(/did not end within 1 s and was killed\. Run it by hand/)
    await expect(hanging).rejects.toBeInstanceOf(KpngError)
    const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'))
    await expect.poll(() => isAlive(pid), { timeout: 90_000 }).toBe(false)
  })

  test('may clean up after SIGTERM; it still failed', async () => {
    const folder = newFolder()
    // Unlike a program that it waits for, `wait` lets the shell act on a signal at once.
    const script = `trap ': > ${folder}/cleaned; exit 0' TERM; (${waitFor(folder, 'cleaned')}) & wait`
    await expect(runProgram('sh', ['-c', script], { limitMs: 1000 })).rejects.toThrow('did not end within 1 s')
    expect(existsSync(join(folder, 'cleaned'))).toBe(true)
  })

  test('is not waited for if something that it started holds its pipes', async () => {
    const folder = newFolder()
    const script = `(${waitFor(folder, 'stop')}) & wait`
    await expect(runProgram('sh', ['-c', script], { limitMs: 200 })).rejects.toThrow('did not end within 0.2 s')
    writeFileSync(join(folder, 'stop'), '')
  })
})

describe('a program that cannot be started', () => {
  test('is missing', async () => {
    const missing = runProgram('/nowhere/nft', [], { limitMs })
    await expect(missing).rejects.toThrow(
      '/nowhere/nft is not installed or not in PATH. Install it, or add its folder to PATH.',
    )
    await expect(missing).rejects.toMatchObject({ code: 'unsupported' })
    expect(isMissingProgram(await missing.catch((error) => error))).toBe(true)
  })

  test('may not be executed', async () => {
    const path = join(newFolder(), 'program')
    writeFileSync(path, 'nothing')
    chmodSync(path, 0o644)
    const denied = runProgram(path, [], { limitMs })
    await expect(denied).rejects.toThrow(/EACCES.* It may not be executed\. Check its permissions\./)
    expect(isMissingProgram(await denied.catch((error) => error))).toBe(false)
  })

  test('has arguments that Node or the kernel refuses', async () => {
    await expect(runProgram('echo', ['a\0b'], { limitMs })).rejects.toBeInstanceOf(KpngError)
    await expect(runProgram('echo', ['x'.repeat(10_000_000)], { limitMs })).rejects.toThrow(/E2BIG.* too long/)
  })

  test('finds no descriptors: the process goes on, and the error says what to do', async () => {
    const { status, printed } = await runWithoutDescriptors(
      `import { runProgram } from './program.ts'
      ${useUpDescriptors}
      for (let time = 1; time <= 3; time++) {
        await runProgram('true', [], { limitMs: 5000, input: 'x' }).then(
          () => console.log('it ran'),
          (error) => console.log(error.name, error.code, error.message),
        )
      }
      console.log('goes on')`,
      new URL(import.meta.url),
    )
    const sentence =
      'KpngError unavailable The program "true" cannot be started: spawn true EMFILE. This process has no file descriptors left. Raise its limit'
    expect(printed.split('\n').map((line) => line.slice(0, sentence.length))).toEqual([
      ...[sentence, sentence, sentence, 'goes on', ''],
    ])
    expect(status).toBe(0)
  })
})
