import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

// Stories: tests as text, for people who know the subject and need not know TypeScript. A file holds stories that belong together. A story begins
// with `== ` and its name. Its steps are paragraphs: lines that do something, then `----`, then what is to be seen. `#` begins a comment line.
// KPNG_WRITE_STORIES=1 writes what is seen into the files; look at the difference before you commit it.

interface Story {
  readonly name: string
  readonly steps: readonly Step[]
}

interface Step {
  /** Where the step is in the file. */
  readonly lines: readonly string[]
  readonly expected: string
}

/** Does what a line says, and returns what is to be seen then, if anything. */
export type Teller = (line: string) => string | undefined | Promise<string | undefined>

/** Runs the stories of a folder (`*.txt`), each with a teller of its own. */
export function runStories(folder: string, start: () => Teller): void {
  for (const name of readdirSync(folder).filter((name) => name.endsWith('.txt'))) {
    const path = `${folder}/${name}`
    describe(name, () => {
      let text = readFileSync(path, 'utf8')
      test.each(storiesIn(text))('$name', async ({ steps }) => {
        const tell = start()
        for (const { lines, expected } of steps) {
          const seen = await told(tell, lines)
          if (seen !== expected && process.env.KPNG_WRITE_STORIES) {
            text = text.replace([...lines, '----', expected].join('\n'), [...lines, '----', seen].join('\n'))
            writeFileSync(path, text)
          } else expect(seen, lines.join('\n')).toBe(expected)
        }
      })
    })
  }
}

async function told(tell: Teller, lines: readonly string[]): Promise<string> {
  const seen: string[] = []
  for (const line of lines) seen.push(...((await tell(line))?.split('\n') ?? []))
  return seen.join('\n')
}

function storiesIn(text: string): Story[] {
  const withoutComments = text.replace(/^#.*\n/gm, '')
  return withoutComments
    .split(/^== /m)
    .slice(1)
    .map((story) => {
      const [name = '', ...rest] = story.split('\n')
      const steps = rest
        .join('\n')
        .split(/\n\s*\n/)
        .flatMap((paragraph) => {
          const [input = '', expected = ''] = paragraph.split(/^----$/m).map((part) => part.trim())
          return input === '' ? [] : [{ lines: input.split('\n'), expected }]
        })
      return { name, steps }
    })
}
