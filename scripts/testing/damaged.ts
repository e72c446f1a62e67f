import fc, { type Arbitrary, type Parameters } from 'fast-check'

// Input that is nearly right, for decoders: most random input is refused at the first byte and proves little.
//
// KPNG_FUZZ_RUNS=100000 npx vitest run .fuzz.test: as long as it takes. What is found is added
// to the corpus, which is always tried.

/** How a decoder is fuzzed: a hundred times, unless KPNG_FUZZ_RUNS says how often. The corpus is always tried. */
export const fuzzing = <Input>(corpus: readonly Input[]): Parameters<[Input]> => ({
  examples: corpus.map((input) => [input]),
  numRuns: corpus.length + Number(process.env.KPNG_FUZZ_RUNS ?? 100),
})

/** Values that decoders have trouble with. */
const oddValues: readonly unknown[] = [
  ...[null, true, 0, -1, 1.5, 65_536, 2 ** 53, 1e99, [], {}, [[]], [null], { a: null }],
  ...['', ' ', '\0', '__proto__', 'constructor', '010.1.1.1', '10.0.0.1/33', '::ffff:1.2.3.4', 'fe80::1%eth0', '1_000'],
  ...['x'.repeat(5000), '\ud800', '10.0.0.1\n', 'TCP ', '9'.repeat(400), '-0', 'null', '2026-13-45T00:00:00Z'],
]

const oddValue: Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...oddValues) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
)

/** The corpus for decoders of text: every one of them is always tried. */
export const oddTexts: readonly string[] = [
  ...[
    '',
    ' ',
    '\0',
    '\ufeff',
    'null',
    '0',
    '[]',
    '{}',
    '[null]',
    '{',
    '- -',
    'a',
    'a: b: c',
    '"\\ud800"',
    '---\n---\n',
  ],
  ...['a: &a [*a]', 'a: &a {b: *a}', '<<: 1', '<<: [1]', '? [a]\n: b', '!!binary x', '!!set {a, b}', '2026-13-45: 1'],
  ...[
    '__proto__: {a: 1}',
    'constructor: {prototype: 1}',
    'a: 1\na: 2',
    `${'['.repeat(2000)}`,
    `${'{"a":'.repeat(2000)}`,
  ],
  ...[
    'kind: Service',
    'kind: 1',
    'apiVersion: []',
    'items: 1',
    'services: [null]',
    'nodes: {}',
    'contexts: null',
    'users: [0]',
  ],
]

/** The corpus for decoders of objects. */
export const oddObjects: readonly unknown[] = [
  ...[undefined, null, 0, '', 'x', true, [], [[]], {}, { metadata: null }, { metadata: [] }, { metadata: { name: 1 } }],
  ...[{ metadata: { name: 'a' }, spec: null }, { metadata: { name: 'a' }, spec: { ports: {} } }, { endpoints: [null] }],
  ...[
    { metadata: { name: 'a', labels: [] }, status: 1 },
    Object.create(null),
    JSON.parse('{"__proto__":{"name":"a"}}'),
  ],
]

/** The corpus for decoders of bytes: lengths that are zero, too small, too large, and negative. */
export const oddBytes: readonly Buffer[] = [
  ...['', '00', '0000000000', 'ffffffffff', '00ffffffff', '0100000000', '0000000001', '007fffffff', '0080000000'],
  ...['00000000', '0f000000', '10000000', 'ffffffff', '1000000000010000', '10000000000000000000000000000000'],
  ...['18000000000102000000000000000000000001000000', '1400000002000000000000000000000000000000', '11000000'],
].map((hex) => Buffer.from(hex, 'hex'))

/** Something like `good`, of which a few parts are replaced, taken away, or put twice. */
export function damaged(good: unknown): Arbitrary<unknown> {
  const places = placesIn(good)
  const damage = fc.record({
    place: fc.constantFrom(...places),
    how: fc.constantFrom('replace', 'replace', 'remove', 'twice'),
    value: oddValue,
  })
  return fc.array(damage, { minLength: 1, maxLength: 4 }).map((all) => {
    let result = structuredClone(good)
    for (const { place, how, value } of all) result = changed(result, place, how, value)
    return result
  })
}

type Place = readonly (string | number)[]

function placesIn(value: unknown, place: Place = []): Place[] {
  if (typeof value !== 'object' || value === null) return [place]
  const inner = Array.isArray(value) ? [...value.entries()] : Object.entries(value)
  return [place, ...inner.flatMap(([key, each]) => placesIn(each, [...place, key]))]
}

function changed(root: unknown, place: Place, how: string, value: unknown): unknown {
  const last = place.at(-1)
  if (last === undefined) return how === 'replace' ? structuredClone(value) : root
  let parent = root as Record<string | number, unknown> | undefined
  for (const key of place.slice(0, -1)) {
    if (typeof parent !== 'object' || parent === null) return root
    parent = parent[key] as typeof parent
  }
  if (typeof parent !== 'object' || parent === null) return root
  if (how === 'remove') delete parent[last]
  else if (how === 'replace') parent[last] = structuredClone(value)
  else if (Array.isArray(parent)) parent.push(structuredClone(parent[last as number]))
  return root
}

/** Something like `good`, with bytes changed, taken away or added. */
export function damagedBytes(good: Buffer): Arbitrary<Buffer> {
  const damage = fc.record({ at: fc.nat(good.length), taken: fc.nat(8), put: fc.uint8Array({ maxLength: 8 }) })
  return fc
    .array(damage, { minLength: 1, maxLength: 5 })
    .map((all) =>
      all.reduce(
        (bytes, { at, taken, put }) => Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + taken)]),
        good,
      ),
    )
}

export const damagedText = (good: string): Arbitrary<string> =>
  damagedBytes(Buffer.from(good)).map((bytes) => bytes.toString())
