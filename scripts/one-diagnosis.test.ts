import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { verdicts } from '@kpng/api'
import { expect, test } from 'vitest'

// Whether a Service works, and why not, is decided in diagnose/ alone. Every surface shows that: none makes a verdict, a reason or a finding of its own.

const root = new URL('..', import.meta.url).pathname
/** The packages that show something. */
const surfaces = ['dashboard', 'node', 'cli']
const excluded = new Set(['dist', 'node_modules', 'testing', 'gen'])

function sourcesIn(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return excluded.has(entry.name) ? [] : sourcesIn(path)
    return /\.tsx?$/.test(entry.name) && !/\.(test|d)\.tsx?$/.test(entry.name) ? [path] : []
  })
}

const quoted = (words: readonly string[]) => `['"\`](?:${words.join('|')})['"\`]`
const endpointReasons = ['not-ready', 'no-port', 'not-local', 'hints-other-node', 'hints-other-zone', 'other-family']

const rules: readonly {
  readonly what: string
  readonly pattern: RegExp
  /** Files that may, and why. */
  readonly except: Readonly<Record<string, string>>
}[] = [
  {
    what: 'gives a Service a verdict',
    pattern: new RegExp(`verdict(?:\\s*=|:)\\s*${quoted(verdicts)}`),
    except: { 'dashboard/model/rows.ts': 'what another version says, and the page does not know, is unknown' },
  },
  {
    what: 'decides by a verdict',
    pattern: new RegExp(
      `verdict [!=]== ${quoted(verdicts)}|state [!=]== ${quoted(verdicts.filter((each) => each !== 'unknown'))}`,
    ),
    except: {
      'dashboard/draw/map-painter.ts': 'the shape of a cell',
      'cli/playground/demo-service.ts': 'of a pod, on the screen of its calls',
      'cli/get.ts': 'the word is left out where all is well',
      'cli/kubectl-plugin.ts': 'of a node',
    },
  },
  {
    what: 'looks at the reason of an endpoint',
    pattern: new RegExp(quoted(endpointReasons)),
    except: { 'node/agent-api/rows.ts': 'whether hints choose endpoints is a property, as session affinity is' },
  },
  {
    what: 'writes a reason in words of its own',
    pattern: /['"`>][^'"`\n]*(?:no endpoint (?:is(?! known)|serves|on|in)|none of its|only terminating)/i,
    except: { 'dashboard/model/states.ts': 'the legend of the verdicts' },
  },
]

const files = surfaces.flatMap(sourcesIn)

test.each(rules)('no surface $what', ({ pattern, except }) => {
  const found = files.filter((file) => !(file in except) && pattern.test(readFileSync(join(root, file), 'utf8')))
  expect(found).toEqual([])
})

test('the rules see what they forbid', () => {
  const examples = [
    "const verdict = 'refused'",
    "row.verdict === 'partly'",
    "if (reason === 'not-ready')",
    "return 'no endpoint is ready'",
  ]
  expect(examples.map((text, index) => rules[index]?.pattern.test(text))).toEqual([true, true, true, true])
})
