import fc, { type Arbitrary, type Parameters } from 'fast-check'

// Input that is nearly right, for decoders: most random input is refused at the first byte and proves little.
//
// KPNG_FUZZ_RUNS=100000 npx vitest run .fuzz.test: as long as it takes. What is found is added to the corpus of its test.

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
