import type { ListKind } from './names.js'

// How a packet draws one of N endpoints evenly when N is data and not part of a rule.
//
// A rule can draw a number below a constant M and look it up; if that slot is empty the rule does not match and the next one
// draws again. Whatever M was, given that the slot was filled, each of the N slots is equally likely. Drawing ends for certain
// with M = N. So a chain that draws below 4, then 3, 2 and 1 spreads evenly over any list of one to four endpoints, and the
// number of endpoints can change without a rule, or a verdict, being touched. (A verdict per N would be looked up faster by
// one or two hash lookups, but the kernel checks the whole table again when a verdict is added: with 10,000 services that
// costs a millisecond for each endpoint that comes or goes.)

/** Up to here every M is tried, and the spread is exact. */
const exactUpTo = 16

/** Four draws at each step leave at most one packet in two hundred to a step that is smaller than its list. */
const drawsPerStep = 4

/** The numbers below which the chain for lists of `size` endpoints draws, one after the other. */
export function drawsOf({ sizes }: Pick<ListKind, 'sizes'>, size: number): number[] {
  const smaller = sizes[sizes.indexOf(size) - 1] ?? 0
  if (size <= exactUpTo) return Array.from({ length: size - smaller }, (_, index) => size - index)
  const steps = [size, (size * 3) / 4, size / 2].flatMap((step) => Array<number>(drawsPerStep).fill(step))
  return [...steps, smaller + 1]
}
