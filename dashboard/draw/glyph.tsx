import type { Verdict } from '@kpng/api'
import { shapes, stateTexts } from '../model/states.js'

/** The shape of a state. With `named` it also has a name for screen readers; without, text beside it says the same. */
export function Glyph({ state, named = false }: { readonly state: Verdict; readonly named?: boolean }) {
  const { fill, stroke, strokeWidth } = shapes[state]
  const name = named
    ? ({ role: 'img', 'aria-label': stateTexts[state].label } as const)
    : ({ 'aria-hidden': true } as const)
  return (
    // biome-ignore lint/a11y/noSvgWithoutTitle: it is named by aria-label, or decorates text
    <svg class={`glyph state-${state}`} viewBox="0 0 12 12" width="12" height="12" {...name}>
      {fill && <path d={fill} fill="currentColor" fill-rule="evenodd" />}
      {stroke && (
        <path d={stroke} fill="none" stroke="currentColor" stroke-width={strokeWidth} stroke-linecap="round" />
      )}
    </svg>
  )
}

interface MeterProps {
  readonly value: number
  readonly of: number
  /** Its colour. Default: that of what is well. */
  readonly state?: Verdict
}

/** A bar that is filled to a share. The text beside it has the numbers. */
export function Meter({ value, of, state = 'serving' }: MeterProps) {
  return (
    <svg class={`meter state-${state}`} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect width="100" height="6" rx="3" class="meter-all" />
      <rect width={of === 0 ? 0 : Math.min(100, (value / of) * 100)} height="6" rx="3" class="meter-used" />
    </svg>
  )
}
