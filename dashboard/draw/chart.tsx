import type { LiveSample } from '@kpng/api'
import { useEffect, useRef, useState } from 'preact/hooks'
import { samples } from '../data/cluster.js'
import { timeOfDay } from '../format.js'
import { colour, colours, fitCanvas, labelFont } from './paint.js'
import { useSize } from './size.js'

export interface ChartLine {
  readonly name: string
  readonly value: (sample: LiveSample) => number | undefined
  readonly text: (value: number) => string
}

export interface ChartProps {
  readonly title: string
  /** What the picture shows. */
  readonly line: ChartLine
  /** A second figure beside the title, without a line. */
  readonly also?: ChartLine
  /** Fills the area below the line. Gaps stay empty without it. */
  readonly hasArea?: boolean
}

const height = 66
/** One sample per second. */
const seconds = 300

/** The last five minutes. */
export function Chart({ title, line, also, hasArea = false }: ChartProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const [box, { width }] = useSize<HTMLDivElement>()
  const [pointedAt, setPointedAt] = useState<number | undefined>(undefined)
  const list = samples.value
  const theme = colours.value
  const shown = pointedAt === undefined ? list.at(-1) : list[pointedAt]

  useEffect(() => {
    if (canvas.current && width > 40) drawChart(canvas.current, { list, width, line, hasArea, pointedAt })
  }, [list, width, line, hasArea, pointedAt, theme])

  const point = ({ offsetX }: PointerEvent) => {
    const second = Math.round((offsetX / width) * (seconds - 1))
    setPointedAt(Math.max(0, Math.min(list.length - 1, second - (seconds - list.length))))
  }
  return (
    <section class="panel chart" aria-label={title}>
      <header class="bar">
        <h2>{title}</h2>
        <dl class="legend">
          {[line, ...(also ? [also] : [])].map(({ name, value, text }) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd class="num">{textOf(shown && value(shown), text)}</dd>
            </div>
          ))}
        </dl>
      </header>
      <div ref={box} class="chart-box">
        <canvas
          ref={canvas}
          role="img"
          aria-label={`${title}: ${line.name}, the last five minutes`}
          onPointerMove={point}
          onPointerLeave={() => setPointedAt(undefined)}
        />
      </div>
      <div class="axis soft" aria-hidden="true">
        <span>5 min ago</span>
        <span>{pointedAt === undefined || !shown ? 'now' : timeOfDay(shown.at * 1000)}</span>
      </div>
    </section>
  )
}

const textOf = (value: number | undefined, text: (value: number) => string) => (value === undefined ? '–' : text(value))

interface Drawing {
  readonly list: readonly LiveSample[]
  readonly width: number
  readonly line: ChartLine
  readonly hasArea: boolean
  readonly pointedAt: number | undefined
}

function drawChart(canvas: HTMLCanvasElement, { list, width, line, hasArea, pointedAt }: Drawing): void {
  const context = fitCanvas(canvas, width, height)
  context.clearRect(0, 0, width, height)
  const values = list.map(line.value)
  const top = roundUp(values.reduce<number>((most, value) => Math.max(most, value ?? 0), 0.95) * 1.05)
  const base = height - 2
  const x = (index: number) => ((index + seconds - list.length) / (seconds - 1)) * width
  const y = (value: number) => base - (value / top) * (base - 14)

  context.lineWidth = 1
  context.strokeStyle = colour('line')
  for (const value of [0, top / 2, top]) horizontal(context, y(value), width)
  context.font = labelFont()
  context.fillStyle = colour('ink-3')
  context.fillText(line.text(top), 0, y(top) - 4)

  context.strokeStyle = colour('chart')
  context.lineWidth = 1.5
  context.lineJoin = 'round'
  drawValues(context, values, { x, y, base, hasArea })
  if (pointedAt === undefined) return
  context.strokeStyle = colour('ink-3')
  context.lineWidth = 1
  context.beginPath()
  context.moveTo(Math.round(x(pointedAt)) + 0.5, 0)
  context.lineTo(Math.round(x(pointedAt)) + 0.5, base)
  context.stroke()
}

interface Scale {
  readonly x: (index: number) => number
  readonly y: (value: number) => number
  readonly base: number
  readonly hasArea: boolean
}

/** Longer than this without a value, in seconds: the line is broken. */
const longestGap = 10
const dotRadius = 1.6

/** A line from value to value. Before and after a long gap there is a dot, so that a single value is seen too. */
function drawValues(context: CanvasRenderingContext2D, values: readonly (number | undefined)[], scale: Scale): void {
  const { x, y, base, hasArea } = scale
  const points = values.flatMap((value, index) => (value === undefined ? [] : [{ index, x: x(index), y: y(value) }]))
  context.fillStyle = colour('chart')
  context.beginPath()
  let last = Number.NEGATIVE_INFINITY
  for (const point of points) {
    if (point.index - last > longestGap) {
      context.fillRect(point.x - dotRadius, point.y - dotRadius, dotRadius * 2, dotRadius * 2)
      context.moveTo(point.x, point.y)
    } else context.lineTo(point.x, point.y)
    last = point.index
  }
  context.stroke()
  const [first, end] = [points[0], points.at(-1)]
  if (!hasArea || !first || !end) return
  context.lineTo(end.x, base)
  context.lineTo(first.x, base)
  context.globalAlpha = 0.12
  context.fill()
  context.globalAlpha = 1
}

function horizontal(context: CanvasRenderingContext2D, y: number, width: number): void {
  context.beginPath()
  context.moveTo(0, Math.round(y) + 0.5)
  context.lineTo(width, Math.round(y) + 0.5)
  context.stroke()
}

/** To 1, 2 or 5 times a power of ten. */
export function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value))
  const factor = [1, 2, 5].find((each) => value / power <= each) ?? 10
  return factor * power
}
