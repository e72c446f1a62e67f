import type { Verdict } from '@kpng/api'
import type { Row } from '../model/rows.js'
import type { Test } from '../model/search.js'
import { shapes, worstFirst } from '../model/states.js'
import { type Layout, labelHeight, layOut } from './map-layout.js'
import { colour, fitCanvas, isStill, labelFont, mixed } from './paint.js'

/** How strongly a row is marked after a change, from none to most, and for how long. */
const strengths = [0, 0.4, 0.85]
const strongMs = 600
const markedMs = 1400
/** Of a Service that the filter does not match. */
const faintness = 0.2

/** A look is a number: four for each state. 0 is that of a cell that was not drawn yet. */
const looksOf = Object.fromEntries(worstFirst.map((state, index) => [state, 1 + index * 4])) as Record<Verdict, number>
const faintLook = 3

/**
 * Draws the map. A cell or a name is drawn again only if it looks different, from pictures that are made once for each look. A key in
 * the search box would otherwise draw thousands of shapes, and measure each name: that takes longer than the rest of the page.
 */
export class MapPainter {
  readonly #canvas: HTMLCanvasElement
  #context: CanvasRenderingContext2D
  #rows: readonly Row[] = []
  #layout: Layout = { pitch: 8, across: 1, blocks: [], height: 0 }
  /** Of each row: x and y of its cell in pixels of the screen. */
  #places = new Int32Array()
  /** Of each row: what was drawn. */
  #looks = new Uint8Array()
  #indexes = new Map<Row, number>()
  /** Of a cell with and without the gap beside it, in pixels of the screen. */
  #pitch = 8
  #size = 6
  /** Cells to be drawn, by look. */
  #waiting: number[][] = []
  /** The pictures of cells, by look. */
  #cells: ImageBitmap[] = []
  /** The pictures of names, by look. */
  #labels = new Map<string, ImageBitmap>()
  /** Of each block with a name: its look. */
  #labelLooks: string[] = []
  #font = ''
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
    this.#looks = new Uint8Array(rows.length)
    this.#labelLooks = []
    this.#pitch = Math.round(this.#layout.pitch * ratio)
    this.#size = this.#pitch - Math.max(1, Math.round((this.#layout.pitch > 9 ? 2 : 1) * ratio))
    this.#waiting = []
    this.#cells = []
    this.#labels.clear()
    this.#font = labelFont(500)
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
    this.#rows.forEach((row, index) => {
      const matches = test?.(row) ?? true
      if (matches) matching.add(row.service.namespace)
      this.#noteCell(index, row, matches, now)
    })
    this.#drawCells()
    this.#drawLabels(matching)
  }

  /** Draws rows that changed. */
  drawRows(rows: readonly Row[], test: Test | undefined): void {
    const now = performance.now()
    for (const row of rows) {
      const index = this.#indexes.get(row)
      if (index !== undefined) this.#noteCell(index, row, test?.(row) ?? true, now)
    }
    this.#drawCells()
  }

  /** Lets marks of changes fade. Returns whether some are left. */
  fade(test: Test | undefined): boolean {
    this.drawRows(
      [...this.#marked].flatMap((index) => this.#rows[index] ?? []),
      test,
    )
    return this.#marked.size > 0
  }

  /** Notes that a cell has to be drawn, if it looks different. */
  #noteCell(index: number, row: Row, matches: boolean, now: number): void {
    const mark = matches ? markOf(row, now) : 0
    if (mark > 0) this.#marked.add(index)
    else if (this.#marked.size > 0) this.#marked.delete(index)
    const look = looksOf[row.service.verdict] + (matches ? mark : faintLook)
    if (this.#looks[index] === look) return
    this.#looks[index] = look
    const waiting = this.#waiting[look]
    if (waiting) waiting.push(index)
    else this.#waiting[look] = [index]
  }

  /** Draws the cells that were noted, look by look. Most are plain squares: filling them is much faster than copying a picture. */
  #drawCells(): void {
    const context = this.#context
    context.setTransform(1, 0, 0, 1, 0, 0)
    this.#waiting.forEach((indexes, look) => {
      const picture = this.#pictureOf(look)
      if (!picture) context.fillStyle = this.#squareColour(look)
      for (const index of indexes) {
        const [x, y] = [this.#places[index * 2] as number, this.#places[index * 2 + 1] as number]
        if (picture) context.drawImage(picture, x, y)
        else context.fillRect(x, y, this.#size, this.#size)
      }
    })
    this.#waiting = []
  }

  /** Undefined for squares. */
  #pictureOf(look: number): ImageBitmap | undefined {
    const state = worstFirst[Math.floor((look - 1) / 4)] as Verdict
    if (state === 'serving') return undefined
    const known = this.#cells[look]
    if (known) return known
    const picture = pictureOf(this.#pitch, this.#pitch, (context) => {
      context.globalAlpha = (look - 1) % 4 === faintLook ? faintness : 1
      drawShape(context, state, this.#size)
    })
    this.#cells[look] = picture
    return picture
  }

  #squareColour(look: number): string {
    const kind = (look - 1) % 4
    if (kind === faintLook) return mixed('map-serving', faintness, 'sheet')
    return mixed('state-serving', strengths[kind] as number, 'map-serving')
  }

  #drawLabels(matching: ReadonlySet<string>): void {
    const ratio = devicePixelRatio || 1
    this.#layout.blocks.forEach(({ label, x, y }, index) => {
      if (label === '') return
      const look = `${label} ${matching.has(label)}`
      if (this.#labelLooks[index] === look) return
      this.#labelLooks[index] = look
      const picture = this.#labels.get(look) ?? this.#newLabel(look, label, matching.has(label))
      this.#context.drawImage(picture, Math.round(x * ratio), Math.round((y - labelHeight) * ratio))
    })
  }

  #newLabel(look: string, label: string, matches: boolean): ImageBitmap {
    const ratio = devicePixelRatio || 1
    const width = this.#layout.across * this.#layout.pitch
    const picture = pictureOf(Math.ceil(width * ratio), Math.ceil(labelHeight * ratio), (context) => {
      context.setTransform(ratio, 0, 0, ratio, 0, 0)
      context.font = this.#font
      context.globalAlpha = matches ? 1 : 0.4
      context.fillStyle = colour('ink-2')
      context.fillText(cut(context, label, width), 0, labelHeight - 4)
    })
    this.#labels.set(look, picture)
    return picture
  }
}

/** @param draw on the background of the map */
function pictureOf(
  width: number,
  height: number,
  draw: (context: OffscreenCanvasRenderingContext2D) => void,
): ImageBitmap {
  const canvas = new OffscreenCanvas(width, height)
  const context = canvas.getContext('2d') as OffscreenCanvasRenderingContext2D
  context.fillStyle = colour('sheet')
  context.fillRect(0, 0, width, height)
  draw(context)
  return canvas.transferToImageBitmap()
}

/** Which of the strengths. */
function markOf({ seenAt }: Row, now: number): number {
  if (seenAt === 0 || now - seenAt > markedMs || isStill.matches) return 0
  return now - seenAt < strongMs ? 2 : 1
}

function drawShape(context: OffscreenCanvasRenderingContext2D, state: Verdict, size: number): void {
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

function cut(context: OffscreenCanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text
  let shown = text
  while (shown.length > 1 && context.measureText(`${shown}…`).width > width) shown = shown.slice(0, -1)
  return `${shown}…`
}
