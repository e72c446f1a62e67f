import type { LiveSync } from '@kpng/api'
import { milliseconds } from '../format.js'
import { ownSpans, type Span, spansOf } from '../model/spans.js'

/** As long as the bar, in milliseconds. Longer syncs are cut off, with a mark. */
const fullMs = 8

/** Where the time of a sync went, on one line. */
export function SpanBars({ sync }: { readonly sync: LiveSync }) {
  const spans = spansOf(sync).filter(({ name }) => ownSpans.includes(name))
  const start = spans[0]?.from ?? 0
  const total = (spans.at(-1)?.to ?? 0) - start
  const scale = 100 / Math.max(total, fullMs)
  return (
    <svg
      class="bars"
      viewBox="0 0 100 8"
      preserveAspectRatio="none"
      role="img"
      aria-label={spans.map(({ name, from, to }) => `${name} ${milliseconds(to - from)}`).join(', ')}
    >
      <rect width="100" height="8" class="span-bed" />
      {spans.map((span) => (
        <SpanRect
          key={span.name}
          span={span}
          start={start}
          scale={scale}
          height={8}
          failed={sync.error !== undefined}
        />
      ))}
      {total > fullMs && <path d="M92 0l2 8M95 0l2 8" class="bars-cut" />}
    </svg>
  )
}

export interface SpanRectProps {
  readonly span: Span
  readonly start: number
  readonly scale: number
  readonly height: number
  readonly failed: boolean
}

/** One span of a sync. */
export function SpanRect({ span: { name, from, to }, start, scale, height, failed }: SpanRectProps) {
  const className = failed && name === 'sync' ? 'span-failed' : `span-${name}`
  return (
    <rect
      x={(from - start) * scale}
      width={Math.max(0.6, (to - from) * scale - 0.4)}
      height={height}
      class={className}
    />
  )
}
