// Where the cells of the map are: namespaces side by side, like the columns of a newspaper. A namespace may go on in the next column, under its name.

/** A part of a namespace in one column. */
export interface Block {
  /** Empty: no name stands above it. */
  readonly label: string
  /** The rows `from` to `from + count - 1`. */
  readonly from: number
  readonly count: number
  /** Of the first cell, in pixels. */
  readonly x: number
  readonly y: number
}

export interface Layout {
  /** From one cell to the next, in pixels. */
  readonly pitch: number
  /** Cells per line of a block. */
  readonly across: number
  readonly blocks: readonly Block[]
  readonly height: number
}

/** Above the first cell of a namespace, for its name. */
export const labelHeight = 14
const betweenNamespaces = 6
const betweenColumns = 12
/** Narrower than this, the cells are one field without names. */
const plainBelow = 480
/** With more namespaces than this, names would take more room than cells. */
const mostNames = 150
const largestPitch = 36
const smallestPitch = 5
/** In a narrow window: cells that a finger can find. */
const smallestNarrowPitch = 14

interface Namespace {
  readonly name: string
  readonly from: number
  count: number
}

/**
 * The layout with the largest cells that fit. If not even the smallest fit, it is higher than asked for.
 * @param namespaces of each row, in order
 * @param step pitches are multiples of it: 1 / devicePixelRatio keeps cells on whole pixels of the screen, which is faster to draw
 */
export function layOut(namespaces: readonly string[], width: number, height: number, step = 1): Layout {
  const groups = grouped(namespaces)
  if (width < plainBelow || groups.length > mostNames) return plainField(namespaces.length, width, height, step)
  for (let room = height; ; room *= 1.2) {
    for (let pitch = largestPitch; pitch >= smallestPitch; pitch -= step) {
      for (let columns = 1; columns <= Math.ceil(width / 80); columns++) {
        const columnWidth = Math.floor((width - betweenColumns * (columns - 1)) / columns)
        const across = Math.floor((columnWidth + 1) / pitch)
        if (across < 5 || columnWidth < 64) break
        const blocks = fillColumns(groups, { columns, columnWidth, across, pitch, height: room })
        if (blocks) return { pitch, across, blocks, height: room }
      }
    }
  }
}

function grouped(namespaces: readonly string[]): Namespace[] {
  const groups: Namespace[] = []
  namespaces.forEach((name, index) => {
    const last = groups.at(-1)
    if (last?.name === name) last.count++
    else groups.push({ name, from: index, count: 1 })
  })
  return groups
}

/** If its smallest cells do not fit, it is higher than asked for. */
function plainField(count: number, width: number, height: number, step: number): Layout {
  const smallest = width < plainBelow ? smallestNarrowPitch : smallestPitch
  for (let pitch = largestPitch; ; pitch -= step) {
    const across = Math.max(1, Math.floor(width / pitch))
    const field = Math.ceil(count / across) * pitch
    if (field > height && pitch - step >= smallest) continue
    return { pitch, across, height: field, blocks: [{ label: '', from: 0, count, x: 0, y: 0 }] }
  }
}

interface Columns {
  readonly columns: number
  readonly columnWidth: number
  readonly across: number
  readonly pitch: number
  readonly height: number
}

/** Undefined: they do not fit. */
function fillColumns(groups: readonly Namespace[], sizes: Columns): Block[] | undefined {
  const { columns, columnWidth, across, pitch, height } = sizes
  const blocks: Block[] = []
  let column = 0
  let y = 0
  for (const { name, from, count } of groups) {
    // No name stands alone at the foot of a column, nor above a single line.
    const least = labelHeight + Math.min(2, Math.ceil(count / across)) * pitch
    if (y > 0 && y + least > height) {
      column++
      y = 0
    }
    for (let done = 0; done < count; ) {
      if (column >= columns) return undefined
      const top = y + labelHeight
      const lines = Math.max(1, Math.min(Math.ceil((count - done) / across), Math.floor((height - top) / pitch)))
      const some = Math.min(count - done, lines * across)
      const x = column * (columnWidth + betweenColumns)
      blocks.push({ label: name, from: from + done, count: some, x, y: top })
      done += some
      y = top + lines * pitch
      if (done < count) {
        column++
        y = 0
      }
    }
    y += betweenNamespaces
  }
  return blocks
}

/** The row whose cell is at a point; undefined between cells. */
export function rowAt({ pitch, across, blocks }: Layout, x: number, y: number): number | undefined {
  for (const block of blocks) {
    const column = Math.floor((x - block.x) / pitch)
    const line = Math.floor((y - block.y) / pitch)
    const index = line * across + column
    if (column >= 0 && column < across && line >= 0 && index < block.count) return block.from + index
  }
  return undefined
}
