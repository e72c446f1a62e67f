import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import '../cli/testing/compiled.js'
import { refusal } from '../deploy/testing/parse.js'
import { whySkipped } from '../linux/testing/index.js'
import { typeFaults, yamlFaults } from './testing/document-blocks.js'
import { commandsOf, isCommands, isKnownLanguage, kpngWords, reasons } from './testing/document-commands.js'
import { isPrinted } from './testing/document-output.js'
import { Reader } from './testing/document-reader.js'
import { type Block, brokenLinks, type Document, findDocuments, readDocument } from './testing/documents.js'

// What documents say is true: links lead somewhere, commands work, YAML is accepted, programs compile. CONTRIBUTING.md, "Write a document",
// describes the comments by which a block says that it cannot be run here.

const root = fileURLToPath(new URL('..', import.meta.url))
const paths = findDocuments(root).sort()
const documents = new Map(paths.map((path) => [path, readDocument(root, path)]))
const each = [...documents.values()].map((document): [string, Document] => [document.path, document])

test.each(each)('%s: links', (_, document) => {
  expect(brokenLinks(root, document, documents).join('\n')).toBe('')
})

test.each(each)('%s: every block has a known language and, if it is not run, a reason', (path, { blocks }) => {
  const faults = blocks.flatMap((block, index) =>
    blockFaults(block, blocks[index - 1]).map((fault) => `${path}:${block.line}: ${fault}`),
  )
  expect(faults.join('\n')).toBe('')
})

function blockFaults(block: Block, above?: Block): string[] {
  if (block.isOutput && !(above && isCommands(above) && above.notRun === undefined))
    return ['It is marked as output, and the block above it is not a block of commands that are run.']
  if (!isKnownLanguage(block)) return [`"${block.language}" is not a known language. Use sh, text, yaml, json or ts.`]
  if (block.notRun === undefined) return []
  const reason = reasons.find((known) => block.notRun?.startsWith(known))
  if (reason === undefined)
    return [`"not run: ${block.notRun}" is not a known reason. Known are:\n  ${reasons.join('\n  ')}`]
  const file = reason === 'is tested by' ? block.notRun.slice(reason.length).trim() : undefined
  return file === undefined || existsSync(join(root, file))
    ? []
    : [`"not run: ${block.notRun}": there is no file ${file}.`]
}

test.each(each)('%s: kpng takes the command lines that are not run', async (path, { blocks }) => {
  const commands = blocks.filter((block) => isCommands(block) && block.notRun !== undefined).flatMap(commandsOf)
  for (const command of commands) {
    const words = kpngWords(command)
    if (words) expect(await refusal(words), `${path}:${command.line}: ${command.text}`).toBeUndefined()
  }
})

test('TypeScript blocks that are complete compile', { timeout: 300_000 }, () => {
  const blocks = each.flatMap(([path, { blocks }]) => blocks.map((block) => ({ path, block })))
  expect(typeFaults(root, blocks).join('\n')).toBe('')
})

const hasCommands = ({ blocks }: Document) => blocks.some((block) => isCommands(block) && block.notRun === undefined)
const isYaml = ({ language, excerpt, notRun }: Block) =>
  ['yaml', 'yml', 'json'].includes(language) && !excerpt && notRun === undefined
const missing = ['kubectl', 'jq', 'curl', 'openssl'].find((program) => spawnSync(program, ['--version']).error)
if (missing !== undefined) console.warn(`SKIPPED: commands of documents: ${missing} is not installed.`)
const why = whySkipped('commands of documents', 'nft', 'conntrack') ?? missing

describe.skipIf(why !== undefined)('commands', () => {
  const reader = new Reader()
  beforeAll(() => reader.start())
  afterAll(() => reader.close())

  test('a command that fails is named with its line, its exit code and its errors', { timeout: 300_000 }, async () => {
    const { blocks } = page(
      '```sh\ntrue\nls \\\n  /nowhere\n```\n\n```console\n$ cat <<E | grep b\na\nE\nsome output\n```\n',
    )
    expect(await reader.follow('page.md', blocks)).toEqual([
      "page.md:3: ended with exit code 2.\n  $ ls \\\n      /nowhere\n    ls: cannot access '/nowhere': No such file or directory",
      expect.stringContaining('page.md:8: ended with exit code 1.'),
    ])
    const ends = page('<!-- exit code 1 -->\n```sh\ntrue\nfalse\n```\n\n<!-- exit code 1 -->\n```sh\ntrue\n```\n')
    expect(await reader.follow('page.md', ends.blocks)).toEqual([
      expect.stringContaining('page.md:9: ended with exit code 0, not 1.'),
    ])
  })

  test('a server that ends by itself fails; one that stays serves the commands after it', {
    timeout: 300_000,
  }, async () => {
    const { blocks } = page(
      '```sh\nkpng file -i examples/state.yaml to-api --no-such-flag\nkpng file -i examples/state.yaml to-api\nkpng-json --node-name vm-001 --once\n```\n',
    )
    expect(await reader.follow('page.md', blocks)).toEqual([
      expect.stringMatching(/^page.md:2: ended by itself with exit code 2[\s\S]*--no-such-flag/),
    ])
  })

  test('a command that prints something else than the page shows is named', { timeout: 300_000 }, async () => {
    const shows = (text: string) =>
      page(`\`\`\`sh\necho a  10.0.0.1 b\n\`\`\`\n\n<!-- output -->\n\`\`\`text\n${text}\n\`\`\`\n`)
    expect(await reader.follow('page.md', shows('a 10.9.9.9  b').blocks)).toEqual([])
    expect(await reader.follow('page.md', shows('a 10.9.9.9 c').blocks)).toEqual([
      'page.md:2: does not print what the block below it shows, but:\n  $ echo a  10.0.0.1 b\na 10.0.0.1 b',
    ])
  })

  test('what a page changes in the cluster is undone for the next one', { timeout: 300_000 }, async () => {
    const changes = page('```sh\nkubectl delete service web\nkubectl create service clusterip other --tcp=80\n```\n')
    expect(await reader.follow('page.md', changes.blocks)).toEqual([])
    const { blocks } = page('```sh\nkubectl get service web\nkubectl get service other\n```\n')
    expect(await reader.follow('page.md', blocks)).toEqual([expect.stringContaining('services "other" not found')])
  })

  test('commands cannot change the machine or see its processes', { timeout: 300_000 }, async () => {
    const { blocks } = page(
      '```sh\ntouch /etc/kpng-docs-test\ntouch node_modules/kpng-docs-test\nls -d /proc/' +
        `${process.pid}` +
        '\n```\n',
    )
    expect(await reader.follow('page.md', blocks)).toEqual([
      expect.stringContaining('Read-only file system'),
      expect.stringContaining('Read-only file system'),
      expect.stringContaining('No such file or directory'),
    ])
  })

  test.each(each.filter(([, { blocks }]) => blocks.some(isYaml)))(
    '%s: YAML',
    { timeout: 300_000 },
    (path, { blocks }) => {
      const faults = blocks.filter(isYaml).flatMap((block) => yamlFaults(path, block, reader))
      expect(faults.join('\n')).toBe('')
    },
  )

  // Minutes, because a busy machine must not fail a page; each command has its own limit.
  test.each(each.filter(([, document]) => hasCommands(document)))(
    '%s',
    { timeout: 600_000 },
    async (path, { blocks }) => {
      expect((await reader.follow(path, blocks)).join('\n\n')).toBe('')
    },
  )
})

/** A page as it would be read from the repository. */
function page(text: string): Document {
  const folder = mkdtempSync(join(tmpdir(), 'kpng-page-'))
  try {
    writeFileSync(join(folder, 'page.md'), text)
    return readDocument(folder, 'page.md')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('a broken link, an unknown reason and an unknown language are named with their line', () => {
  const { blocks, ...rest } = page(
    '# A\n[b](b.md) [c](#c)\n\n<!-- not run: because -->\n```sh\nls\n```\n\n```bsh\nls\n```\n\n<!-- output -->\n```text\na\n```\n',
  )
  const document = { blocks, ...rest }
  expect(brokenLinks(join(root, 'docs'), document, new Map([['page.md', document]]))).toEqual([
    'page.md:2: b.md: there is no file b.md.',
    expect.stringContaining('there is no file page.md'),
  ])
  expect(blocks.map((block) => [block.line, ...blockFaults(block)])).toEqual([
    [6, expect.stringMatching(/"not run: because" is not a known reason. Known are:\n {2}needs a real cluster/)],
    [10, '"bsh" is not a known language. Use sh, text, yaml, json or ts.'],
    [15, 'It is marked as output, and the block above it is not a block of commands that are run.'],
  ])
})

test('output is as shown if it differs only in addresses, times, generated names and what … stands for', () => {
  const printed = 'a pod 10.244.0.7\nshop-0373678ee9-5jckc in 2.5 ms\nlast line'
  expect(isPrinted('a pod  10.244.12.1\nshop-aaaaaaaaaa-bbbbb in 14 ms\nlast line\n', printed)).toBe(true)
  expect(isPrinted('a pod …\nlast line', printed)).toBe(true)
  expect(isPrinted('a pod 10.244.0.7', printed)).toBe(false)
  expect(isPrinted('another pod …', printed)).toBe(false)
})

test.each([
  ['sudo kpng file -i a to-local \\\n  to-nft | grep "x y"', ['file', '-i', 'a', 'to-local', 'to-nft']],
  ['kubectl exec ds/kpng -- kpng status  # well?', ['status']],
  ["npx kpng-json --x 'a b' &", ['local', 'to-json', '--x', 'a b']],
  ['kpng', []],
  ['kubectl get pods', undefined],
])('the words of %s', (text, words) => {
  expect(kpngWords({ line: 1, text, untilStopped: false })).toEqual(words)
})

test('lists what is not run', () => {
  const lines = each.flatMap(([path, { blocks }]) =>
    blocks.flatMap(({ line, notRun }) => (notRun === undefined ? [] : [`  ${path}:${line}: ${notRun}`])),
  )
  console.info(`Blocks that are not run: ${lines.length}\n${lines.join('\n')}`)
})
