import type { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { pathOf } from './help.js'
import { buildProgram, everyCommand } from './program.js'

// The help texts, in process. `npx vitest run cli/help.test.ts -u` writes the golden files anew.

class Parsed extends Error {}
const program = (name: string) =>
  buildProgram(name, '1.2.3', async () => {
    throw new Parsed()
  })

const find = (words: string): Command => {
  const [name = '', ...rest] = words.split(' ')
  return rest.reduce((command, word) => command.commands.find((sub) => sub.name() === word) as Command, program(name))
}

function helpOf(command: Command, output: { width?: number; colours?: boolean } = {}): string {
  let text = ''
  command.configureOutput({
    writeOut: (part) => {
      text += part
    },
    getOutHelpWidth: () => output.width ?? 80,
    getOutHasColors: () => output.colours ?? false,
  })
  command.outputHelp()
  return text
}

test.each([
  'kpng',
  'kpng kube',
  'kpng kube to-api',
  'kpng kube to-local to-nft',
  'kpng cleanup',
  'kpng conformance',
  'kpng conformance winkernel',
  'kpng-json',
  'kpng-callout',
])('%s --help', async (words) => {
  await expect(helpOf(find(words))).toMatchFileSnapshot(`testing/help/${words.replaceAll(' ', '_')}.txt`)
})

test.each(['kpng', 'kpng kube', 'kpng local to-nft', 'kpng api to-local', 'kpng kube to-local to-iptables'])(
  'a tree that is made for "%s" has the same help',
  (words) => {
    const [name = '', ...rest] = words.split(' ')
    const made = buildProgram(name, '1.2.3', () => Promise.reject(new Parsed()), rest)
    const command = rest.reduce((found, word) => found.commands.find((sub) => sub.name() === word) as Command, made)
    expect(helpOf(command)).toBe(helpOf(find(words)))
  },
)

const all = ['kpng', 'kpng-json', 'kpng-callout'].flatMap((name) =>
  everyCommand(program(name)).filter((command) => !command.name().endsWith('-agent')),
)

describe.each(all.map((command) => [pathOf(command), command] as const))('%s', (path, command) => {
  const help = helpOf(command)
  const examples = [...help.matchAll(/^ {2}\$ (.*)$/gm)].map(([, example]) => example as string)

  test('fits into 80 columns, except for a long example', () => {
    expect(help.split('\n').filter((line) => line.length > 80 && !line.startsWith('  $ '))).toEqual([])
  })

  test('shows the flags of the words before it', () => {
    for (const flag of ['--node-name', '--v <level>', '--log-format', '--help']) expect(help).toContain(flag)
    if (path.startsWith('kpng kube')) expect(help).toContain('--kubeconfig')
    if (path.includes('to-local')) expect(help).toContain('--once')
  })

  test.skipIf(['kpng version', 'kpng help'].includes(path))('has two examples', () => {
    expect(new Set(examples).size).toBe(2)
  })

  test.each(examples.filter((example) => example.startsWith('kpng') && !example.includes(' completion ')))(
    'the example "%s" is a command line that kpng accepts',
    async (example) => {
      const [name = '', ...words] = example.split(' ')
      await expect(program(name).parseAsync(words, { from: 'user' })).rejects.toThrow(Parsed)
    },
  )
})

test('headings are bold on a terminal only', () => {
  expect(helpOf(find('kpng'), { colours: true })).toContain('\u001b[1mUsage:\u001b[22m')
  expect(helpOf(find('kpng'), { colours: true })).toContain('\u001b[1mExamples:\u001b[22m')
  expect(helpOf(find('kpng'))).not.toContain('\u001b')
})

test.each(['-v=2', '--v=2', '-v 2', '--v 2', '-v2'])('%s is verbosity 2', async (words) => {
  const parsed = program('kpng')
  await expect(parsed.parseAsync([...words.split(' '), 'playground'], { from: 'user' })).rejects.toThrow(Parsed)
  expect(parsed.opts().v).toBe('2')
})
