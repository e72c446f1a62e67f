import type { ListKind } from './names.js'

// How a packet draws one of N endpoints evenly, although N is data and not part of a rule.
//
// A rule can draw a number below a constant M and look it up. If that slot is empty, the rule does not match, and the next rule
// draws again. If a slot is filled, each of the N slots is equally likely, for any M. The draw with M = N always succeeds. So a
// chain that draws below 4, then 3, 2 and 1 distributes evenly over any list of one to four endpoints, and the number of endpoints
// can change without a change to a rule or a verdict. (One verdict per N would save one or two hash lookups. But the kernel checks
// the whole table again when a verdict is added: with 10,000 Services, one millisecond per endpoint that is added or removed.)

/** Up to this size every M is tried, and the distribution is exact. */
const exactUpTo = 16

/** With four draws per step, at most one packet in two hundred reaches a step that is smaller than its list. */
const drawsPerStep = 4

/** Below which numbers the chain for lists of `size` endpoints draws, one after the other, and how many times each. */
export function drawsOf({ sizes }: Pick<ListKind, 'sizes'>, size: number): { below: number; times: number }[] {
  const smaller = sizes[sizes.indexOf(size) - 1] ?? 0
  if (size <= exactUpTo)
    return Array.from({ length: size - smaller }, (_, index) => ({ below: size - index, times: 1 }))
  const steps = [size, (size * 3) / 4, size / 2].map((below) => ({ below, times: drawsPerStep }))
  return [...steps, { below: smaller + 1, times: 1 }]
}
