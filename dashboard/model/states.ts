import type { Verdict } from '@kpng/api'

// The states of a Service: words and a shape for each. The shapes are the same in text and on the map, and can be told apart without colour.

interface StateText {
  readonly label: string
  readonly meaning: string
  /** Whether the headline counts it among those that are served here. */
  readonly isServed?: true
}

export const stateTexts: Readonly<Record<Verdict, StateText>> = {
  serving: { label: 'serving', meaning: 'Every new connection reaches an endpoint.', isServed: true },
  partly: { label: 'partly', meaning: 'A port, an address or a kind of client is not served; others are.' },
  draining: {
    label: 'draining',
    meaning: 'Only terminating endpoints are left, and they still serve.',
    isServed: true,
  },
  dropped: {
    label: 'dropped here',
    meaning: 'A traffic policy is Local and no endpoint is on this node: such traffic is dropped here.',
  },
  refused: { label: 'refused', meaning: 'No endpoint can serve it: connections are refused.' },
  notServedHere: {
    label: 'not served here',
    meaning: 'It is of another proxy, or of a kind that this data plane does not serve.',
  },
  absent: { label: 'absent', meaning: 'There is no such Service.' },
  unknown: { label: 'unknown', meaning: 'What would have to be known is not.' },
  differs: { label: 'differs', meaning: 'The data plane does not hold what it should. kpng repairs it.' },
}

/** `dropped` is normal on a node without an endpoint, so it comes after the states that are not. */
export const worstFirst: readonly Verdict[] = [
  'differs',
  'refused',
  'partly',
  'draining',
  'unknown',
  'absent',
  'notServedHere',
  'dropped',
  'serving',
]

export const isVerdict = (text: string): text is Verdict => Object.hasOwn(stateTexts, text)

/** A shape on a field of 12 × 12. */
export interface Shape {
  readonly fill?: string
  readonly stroke?: string
  readonly strokeWidth?: number
}

const frame =
  'M1.7 3.2a1.5 1.5 0 0 1 1.5-1.5h5.6a1.5 1.5 0 0 1 1.5 1.5v5.6a1.5 1.5 0 0 1-1.5 1.5h-5.6a1.5 1.5 0 0 1-1.5-1.5z'

export const shapes: Readonly<Record<Verdict, Shape>> = {
  serving: { fill: 'M1 3a2 2 0 0 1 2-2h6a2 2 0 0 1 2 2v6a2 2 0 0 1-2 2h-6a2 2 0 0 1-2-2z' },
  partly: { fill: 'M1 6h10v3a2 2 0 0 1-2 2h-6a2 2 0 0 1-2-2z', stroke: frame, strokeWidth: 1.4 },
  draining: { fill: 'M6 0 12 6 6 12 0 6z' },
  dropped: { stroke: `${frame}M4 6h4`, strokeWidth: 1.4 },
  refused: { stroke: 'M2 2l8 8M10 2l-8 8', strokeWidth: 2.6 },
  notServedHere: { stroke: 'M6 1.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9M3 9l6-6', strokeWidth: 1.4 },
  absent: { stroke: 'M3 6h6', strokeWidth: 1.4 },
  unknown: { stroke: 'M4 4.2a2 2 0 1 1 2.6 1.9q-.6.2-.6 1.1M6 10v.2', strokeWidth: 1.6 },
  differs: { fill: 'M6 .4 12 11.4H0zM5.2 4.4v3.2h1.6V4.4zM5.2 8.5v1.6h1.6V8.5z' },
}
