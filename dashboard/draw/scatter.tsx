import type { LiveSync } from '@kpng/api'
import { useEffect, useRef } from 'preact/hooks'
import { agentClock } from '../data/connection.js'
import { timeOfDay } from '../format.js'
import { totalMs } from '../model/spans.js'
import { changeHref, goTo } from '../route.js'
import { colour, colours, fitCanvas, labelFont } from './paint.js'
import { useSize } from './size.js'

const height = 132
const left = 52
const shortestMs = 0.5
const longestMs = 2000
const lines: readonly (readonly [number, string])[] = [
  [1, '1 ms'],
  [10, '10 ms'],
  [100, '100 ms'],
  [1000, '1 s'],
]
const leastSpanMs = 15_000
const mostSpanMs = 300_000
const clickDistance = 12

interface Dot {
  readonly x: number
  readonly y: number
  readonly sync: LiveSync
}

/** Each sync as a dot: when, and how long. A failed one is a cross. The list below says the same in words. */
export function Scatter({
  syncs,
  chosen,
}: {
  readonly syncs: readonly LiveSync[]
  readonly chosen: number | undefined
}) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const dots = useRef<readonly Dot[]>([])
  const [box, { width }] = useSize<HTMLDivElement>()
  const now = agentClock.value
  const theme = colours.value
  useEffect(() => {
    if (canvas.current && width > 80) dots.current = drawScatter(canvas.current, { syncs, chosen, now, width })
  }, [syncs, chosen, now, width, theme])
  return (
    <div ref={box} class="scatter">
      <canvas
        ref={canvas}
        role="img"
        aria-label="Each change as a dot: when, and how long it took. The list below says the same in words."
        onClick={({ offsetX, offsetY }) => {
          const nearest = nearestTo(dots.current, offsetX, offsetY)
          if (nearest) goTo(changeHref(nearest.number))
        }}
      />
    </div>
  )
}

function nearestTo(dots: readonly Dot[], x: number, y: number): LiveSync | undefined {
  let best: LiveSync | undefined
  let distance = clickDistance
  for (const dot of dots) {
    const away = Math.hypot(dot.x - x, dot.y - y)
    if (away < distance) {
      distance = away
      best = dot.sync
    }
  }
  return best
}

interface Drawing {
  readonly syncs: readonly LiveSync[]
  readonly chosen: number | undefined
  readonly now: number
  readonly width: number
}

/** @returns where the dots are */
function drawScatter(canvas: HTMLCanvasElement, { syncs, chosen, now, width }: Drawing): Dot[] {
  const context = fitCanvas(canvas, width, height)
  context.clearRect(0, 0, width, height)
  context.font = labelFont()
  const oldest = syncs.reduce((first, { at }) => Math.min(first, Date.parse(at)), now)
  const from = now - Math.max(leastSpanMs, Math.min(mostSpanMs, now - oldest))
  const scale = Math.log(longestMs / shortestMs)
  const y = (ms: number) =>
    height - 14 - (Math.log(Math.min(longestMs, Math.max(shortestMs, ms)) / shortestMs) / scale) * (height - 26)
  const x = (at: number) => left + ((at - from) / (now - from)) * (width - left - 8)

  context.lineWidth = 1
  for (const [ms, text] of lines) {
    context.strokeStyle = colour('line')
    context.beginPath()
    context.moveTo(left, Math.round(y(ms)) + 0.5)
    context.lineTo(width, Math.round(y(ms)) + 0.5)
    context.stroke()
    context.fillStyle = colour('ink-3')
    context.fillText(text, 0, y(ms) + 3.5)
  }
  const dots = syncs
    .map((sync) => ({ sync, x: x(Date.parse(sync.at)), y: y(totalMs(sync)) }))
    .filter((dot) => dot.x >= left)
  for (const dot of dots) drawDot(context, dot, dot.sync.number === chosen)
  context.fillStyle = colour('ink-3')
  context.fillText(timeOfDay(from), left, height - 1)
  context.textAlign = 'right'
  context.fillText('now', width, height - 1)
  context.textAlign = 'left'
  return dots
}

function drawDot(context: CanvasRenderingContext2D, { x, y, sync }: Dot, isChosen: boolean): void {
  context.beginPath()
  if (sync.error !== undefined) {
    context.strokeStyle = colour('state-refused')
    context.lineWidth = 2
    context.moveTo(x - 4, y - 4)
    context.lineTo(x + 4, y + 4)
    context.moveTo(x + 4, y - 4)
    context.lineTo(x - 4, y + 4)
    context.stroke()
  } else {
    context.globalAlpha = 0.6
    context.fillStyle = colour('chart')
    context.arc(x, y, 2.4, 0, 7)
    context.fill()
    context.globalAlpha = 1
  }
  if (!isChosen) return
  context.strokeStyle = colour('ink')
  context.lineWidth = 1.5
  context.beginPath()
  context.arc(x, y, 7, 0, 7)
  context.stroke()
}
