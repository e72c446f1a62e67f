import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

/** Rows above and below what is seen, so that scrolling shows no gap. */
const spare = 2

/** Where each list was left, for when somebody comes back to it. */
const places = new Map<string, { top: number; focused: number }>()
const placeOf = (id: string) => {
  const known = places.get(id)
  if (known) return known
  const fresh = { top: 0, focused: -1 }
  places.set(id, fresh)
  return fresh
}

export interface VirtualListProps<Item> {
  /** Of the element; also the name under which its place is remembered. */
  readonly id: string
  readonly label: string
  readonly items: readonly Item[]
  /** Of each row, in pixels. */
  readonly rowHeight: number
  /** A row is one link. */
  readonly row: (item: Item) => ComponentChildren
  /** Stays above the rows. */
  readonly head?: ComponentChildren
  /** Somebody points at the list or has the focus in it, or no longer does: it should keep its order. */
  readonly onHold?: (isHeld: boolean) => void
}

/** A list of which only what is seen is in the document. j, k and the arrow keys move the focus. */
export function VirtualList<Item>(props: VirtualListProps<Item>) {
  const { id, label, items, rowHeight, row, head, onHold } = props
  const box = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(placeOf(id).top)
  const [room, setRoom] = useState(600)
  const wanted = useRef(-1)
  useEffect(() => {
    const element = box.current
    if (!element) return
    const observer = new ResizeObserver(() => setRoom(element.clientHeight))
    observer.observe(element)
    element.scrollTop = placeOf(id).top
    return () => observer.disconnect()
  }, [id])
  useLayoutEffect(() => {
    if (wanted.current < 0) return
    const link = box.current?.querySelector<HTMLElement>(`[data-index="${wanted.current}"] a`)
    if (!link) return
    link.focus({ preventScroll: true })
    wanted.current = -1
  })

  const moveTo = (to: number) => {
    const element = box.current
    if (!element || items.length === 0) return
    const index = Math.max(0, Math.min(items.length - 1, to))
    const above = index * rowHeight
    if (above < element.scrollTop) element.scrollTop = above
    else if (above + rowHeight > element.scrollTop + room) element.scrollTop = above + rowHeight - room
    wanted.current = index
    // The focus is set after the next rendering, also if nothing was scrolled.
    setTop(element.scrollTop === top ? top + 0.01 : element.scrollTop)
  }
  const first = Math.max(0, Math.min(Math.floor(top / rowHeight), items.length) - spare)
  const last = Math.min(items.length, Math.ceil((top + room) / rowHeight) + spare)
  return (
    // biome-ignore lint/a11y/useSemanticElements: ul would need all rows as children
    <div
      class="virtual"
      ref={box}
      id={id}
      role="list"
      aria-label={label}
      onScroll={({ currentTarget }) => {
        placeOf(id).top = currentTarget.scrollTop
        setTop(currentTarget.scrollTop)
      }}
      onFocusIn={({ target }) => {
        placeOf(id).focused = indexOf(target)
        onHold?.(true)
      }}
      onFocusOut={() => onHold?.(false)}
      onPointerEnter={() => onHold?.(true)}
      onPointerLeave={() => onHold?.(false)}
      onKeyDown={(event) => {
        const step = steps[event.key]
        if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return
        event.preventDefault()
        event.stopPropagation()
        // A key may come before the focus has followed the one before.
        moveTo((wanted.current < 0 ? indexOf(event.target) : wanted.current) + step)
      }}
    >
      {head}
      <div class="virtual-all" role="presentation" style={{ height: `${items.length * rowHeight}px` }}>
        {items.slice(first, last).map((item, offset) => (
          // biome-ignore lint/a11y/useSemanticElements: see above
          <div
            class="virtual-row"
            role="listitem"
            aria-setsize={items.length}
            aria-posinset={first + offset + 1}
            // By place, not by item: another filter then changes texts, and makes no elements.
            key={first + offset}
            data-index={first + offset}
            style={{ top: `${(first + offset) * rowHeight}px`, height: `${rowHeight}px` }}
          >
            {row(item)}
          </div>
        ))}
      </div>
    </div>
  )
}

const steps: Readonly<Record<string, number>> = {
  ...{ j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: 10, PageUp: -10 },
  ...{ Home: Number.NEGATIVE_INFINITY, End: Number.POSITIVE_INFINITY },
}

const indexOf = (target: EventTarget | null): number =>
  Number((target as HTMLElement | null)?.closest<HTMLElement>('[data-index]')?.dataset.index ?? -1)

/** Moves the focus into a list: to the row where it was, or to the first. */
export function enterList(id: string): void {
  const list = document.getElementById(id)
  const row = list?.querySelector<HTMLElement>(`[data-index="${placeOf(id).focused}"] a`)
  const link = row ?? list?.querySelector<HTMLElement>('[data-index] a')
  link?.focus()
}
