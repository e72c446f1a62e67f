import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

// Authors of backends read the types in their editor. Every field of a public type says what it means, its unit, its default, and
// when it is undefined.

const root = new URL('..', import.meta.url).pathname

/** `Interface.field` for each field of an exported interface without a comment of its own. */
function undocumented(text: string): string[] {
  const missing: string[] = []
  let current = ''
  let before = ''
  for (const line of text.split('\n')) {
    current = /^export interface (\w+)/.exec(line)?.[1] ?? (line === '}' ? '' : current)
    const field = /^ {2}(?:readonly )?(\w+)\??[:(<]/.exec(line)?.[1]
    if (current && field && !before.trimEnd().endsWith('*/')) missing.push(`${current}.${field}`)
    before = line
  }
  return missing
}

/** `Message.field` for each field of a message without a comment of its own. */
function undocumentedFields(proto: string): string[] {
  const missing: string[] = []
  let current = ''
  let before = ''
  for (const line of proto.split('\n')) {
    current = /^message (\w+)/.exec(line)?.[1] ?? (line === '}' ? '' : current)
    const field = /^ {2,4}(?:repeated |optional )?[\w.<>, ]+ (\w+) = \d+;/.exec(line)?.[1]
    if (current && field && !before.trim().startsWith('//')) missing.push(`${current}.${field}`)
    before = line
  }
  return missing
}

const sources = ['api', 'client', 'client/testing', 'dataplane'].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => `${folder}/${name}`),
)

describe('every field is explained', () => {
  test.each(sources)('in %s', (file) => {
    expect(undocumented(readFileSync(join(root, file), 'utf8'))).toEqual([])
  })

  test.each(['localv1', 'globalv1'])('in the messages of %s', (name) => {
    expect(undocumentedFields(readFileSync(join(root, 'api/proto', name, 'api.proto'), 'utf8'))).toEqual([])
  })

  test('and one that is not is found', () => {
    expect(undocumented('export interface A {\n  /** b */\n  readonly b: 1\n  readonly c?: 1\n  d(): void\n}')).toEqual(
      ['A.c', 'A.d'],
    )
    expect(undocumentedFields('message A {\n  // b\n  int32 b = 1;\n  repeated string c = 2;\n}')).toEqual(['A.c'])
  })
})
