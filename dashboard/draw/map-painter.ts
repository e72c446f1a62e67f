import type { ServiceState } from '@kpng/api'
import type { Row } from '../model/rows.js'
import type { Test } from '../model/search.js'
import { shapes } from '../model/states.js'
import { type Layout, layOut } from './map-layout.js'
import { colour, fitCanvas, isStill, labelFont } from './paint.js'

/** How strongly a row that was just changed is marked, and for how long after the change. */
const marks: readonly (readonly [untilMs: number, strength: number])[] = [
  [600, 0.85],
  [1400, 0.4],
]
/** Of a Service that the filter does not match. */
const faintness = 0.2

/**
 * Draws the map. A cell is drawn again only if it looks different, from pictures that are made once for each look: a key in the
 * search box would otherwise draw thousands of shapes, which takes longer than the rest of the page.
 */
export class MapPainter {
  readonly #canvas: HTMLCanvasElement
  #context: CanvasRenderingContext2D
  #rows: readonly Row[] = []
  #layout: Layout = { pitch: 8, across: 1, blocks: [], height: 0 }
  /** Of each row: x and y of its cell in pixels of the screen. */
  #places = new Int32Array()
  /** Of each row: what was drawn. */
  #looks: string[] = []
  #indexes = new Map<Row, number>()
  #pictures = new Map<string, HTMLCanvasElement>()
  /** Labels that are drawn faintly, because the filter matches nothing below them. */
  #faintLabels = ''
  readonly #marked = new Set<number>()

  constructor(canvas: HTMLCanvasElement) {
    this.#canvas = canvas
    this.#context = canvas.getContext('2d') as CanvasRenderingContext2D
  }

  get layout(): Layout {
    return this.#layout
  }

  rowAt(index: number): Row | undefined {
    return this.#rows[index]
  }

  /** Takes other rows, another size or other colours. Everything is drawn at the next `draw`. */
  place(rows: readonly Row[], width: number, height: number): void {
    const ratio = devicePixelRatio || 1
    const namespaces = rows.map(({ service }) => service.namespace)
    this.#rows = rows
    this.#layout = layOut(namespaces, width, height, 1 / ratio)
    this.#canvas.style.height = `${this.#layout.height}px`
    this.#context = fitCanvas(this.#canvas, width, this.#layout.height)
    this.#context.clearRect(0, 0, width, this.#layout.height)
    this.#indexes = new Map(rows.map((row, index) => [row, index]))
    this.#looks = []
    this.#faintLabels = '?'
    this.#pictures.clear()
    this.#marked.clear()
    this.#places = new Int32Array(rows.length * 2)
    const { blocks, across, pitch } = this.#layout
    for (const { from, count, x, y } of blocks) {
      for (let index = 0; index < count; index++) {
        this.#places[(from + index) * 2] = Math.round((x + (index % across) * pitch) * ratio)
        this.#places[(from + index) * 2 + 1] = Math.round((y + Math.floor(index / across) * pitch) * ratio)
      }
    }
  }

  /** Draws what looks different with this filter. */
  draw(test: Test | undefined): void {
    const now = performance.now()
    const matching = new Set<string>()
    this.#context.setTransform(1, 0, 0, 1, 0, 0)
    this.#rows.forEach((row, index) => {
      const matches = test?.(row) ?? true
      if (matches) matching.add(row.service.namespace)
      this.#drawCell(index, row, matches, now)
    })
    this.#drawLabels(matching)
  }

  /** Draws rows that changed. */
  drawRows(rows: readonly Row[], test: Test | undefined): void {
    const now = performance.now()
    this.#context.setTransform(1, 0, 0, 1, 0, 0)
    for (const row of rows) {
      const index = this.#indexes.get(row)
      if (index !== undefined) this.#drawCell(index, row, test?.(row) ?? true, now)
    }
  }

  /** Lets marks of changes fade. Returns whether some are left. */
  fade(test: Test | undefined): boolean {
    this.drawRows(
      [...this.#marked].flatMap((index) => this.#rows[index] ?? []),
      test,
    )
    return this.#marked.size > 0
  }

  #drawCell(index: number, row: Row, matches: boolean, now: number): void {
    const strength = matches ? markOf(row, now) : 0
    if (strength > 0) this.#marked.add(index)
    else this.#marked.delete(index)
    const look = `${row.service.state} ${matches ? strength : 'faint'}`
    if (this.#looks[index] === look) return
    this.#looks[index] = look
    const picture = this.#pictures.get(look) ?? this.#newPicture(look, row.service.state, matches, strength)
    this.#context.drawImage(picture, this.#places[index * 2] as number, this.#places[index * 2 + 1] as number)
  }

  /** A cell on the background, so that it covers what was there. */
  #newPicture(look: string, state: ServiceState, matches: boolean, strength: number): HTMLCanvasElement {
    const ratio = devicePixelRatio || 1
    const pixels = Math.round(this.#layout.pitch * ratio)
    const gap = Math.max(1, Math.round((this.#layout.pitch > 9 ? 2 : 1) * ratio))
    const size = pixels - gap
    const picture = document.createElement('canvas')
    picture.width = pixels
    picture.height = pixels
    const context = picture.getContext('2d') as CanvasRenderingContext2D
    context.fillStyle = colour('sheet')
    context.fillRect(0, 0, pixels, pixels)
    context.globalAlpha = matches ? 1 : faintness
    if (state === 'serving') {
      context.fillStyle = colour('map-serving')
      context.fillRect(0, 0, size, size)
      context.globalAlpha = strength
      context.fillStyle = colour('state-serving')
      context.fillRect(0, 0, size, size)
    } else {
      drawShape(context, state, size)
    }
    this.#pictures.set(look, picture)
    return picture
  }

  #drawLabels(matching: ReadonlySet<string>): void {
    const labels = this.#layout.blocks.filter(({ label }) => label !== '')
    const faint = labels.map(({ label }) => (matching.has(label) ? '' : label)).join('/')
    if (faint === this.#faintLabels) return
    this.#faintLabels = faint
    const ratio = devicePixelRatio || 1
    const context = this.#context
    const width = this.#layout.across * this.#layout.pitch
    context.setTransform(ratio, 0, 0, ratio, 0, 0)
    context.font = labelFont(500)
    for (const { label, x, y } of labels) {
      context.clearRect(x, y - 13, width, 13)
      context.globalAlpha = matching.has(label) ? 1 : 0.4
      context.fillStyle = colour('ink-2')
      context.fillText(cut(context, label, width), x, y - 4)
    }
    context.globalAlpha = 1
  }
}

function markOf({ seenAt }: Row, now: number): number {
  if (seenAt === 0 || isStill.matches) return 0
  return marks.find(([untilMs]) => now - seenAt < untilMs)?.[1] ?? 0
}

function drawShape(context: CanvasRenderingContext2D, state: ServiceState, size: number): void {
  const { fill, stroke, strokeWidth = 1.4 } = shapes[state]
  const scale = size / 12
  context.setTransform(scale, 0, 0, scale, 0, 0)
  context.fillStyle = colour(`state-${state}`)
  context.strokeStyle = colour(`state-${state}`)
  if (fill) context.fill(new Path2D(fill), 'evenodd')
  if (!stroke) return
  context.lineWidth = Math.max(strokeWidth, 1.1 / scale)
  context.lineCap = 'round'
  context.stroke(new Path2D(stroke))
}

function cut(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text
  let shown = text
  while (shown.length > 1 && context.measureText(`${shown}…`).width > width) shown = shown.slice(0, -1)
  return `${shown}…`
}
