import type { RefObject } from 'preact'
import { useLayoutEffect, useState } from 'preact/hooks'

// The lines of the picture of a path, from box to box. They are measured after the boxes are laid out.

interface Wire {
  readonly path: string
  readonly isThin: boolean
}

type Point = readonly [x: number, y: number]

/** @param subject measures again when it changes */
export function Wires({
  within,
  subject,
}: {
  readonly within: RefObject<HTMLElement | null>
  readonly subject: unknown
}) {
  const [wires, setWires] = useState<readonly Wire[]>([])
  useLayoutEffect(() => {
    const box = within.current
    if (!box) return
    const measure = () => setWires(wiresIn(box))
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(box)
    // The choices stay in sight while a long list of endpoints is scrolled.
    addEventListener('scroll', measure, { passive: true })
    return () => {
      observer.disconnect()
      removeEventListener('scroll', measure)
    }
  }, [within, subject])
  return (
    <svg class="wires" aria-hidden="true">
      {wires.map(({ path, isThin }) => (
        <path key={path} d={path} class={isThin ? 'thin-wire' : ''} />
      ))}
    </svg>
  )
}

function wiresIn(box: HTMLElement): Wire[] {
  const origin = box.getBoundingClientRect()
  const find = (selector: string) => box.querySelector(selector)?.getBoundingClientRect()
  const middle = ({ top, height }: DOMRect) => top + height / 2 - origin.top
  const rightOf = (rect: DOMRect): Point => [rect.right - origin.left, middle(rect)]
  const leftOf = (rect: DOMRect): Point => [rect.left - origin.left, middle(rect)]
  const who = find('.who .on')
  const where = find('.where .on')
  const how = find('.how ol')
  // In a narrow window the boxes are below each other, without lines.
  if (!who || !where || !how || where.left < who.right || how.left < where.right) return []
  const enter = Math.min(Math.max(middle(where), how.top - origin.top + 14), how.bottom - origin.top - 14)
  const last = find('.how .last') ?? how
  const answers = [...box.querySelectorAll('.endpoint.used')].map((element) => element.getBoundingClientRect())
  return [
    { path: curve(rightOf(who), leftOf(where)), isThin: false },
    { path: curve(rightOf(where), [how.left - origin.left, enter]), isThin: false },
    ...answers.map((rect) => ({ path: curve([how.right - origin.left, middle(last)], leftOf(rect)), isThin: true })),
  ]
}

function curve([x1, y1]: Point, [x2, y2]: Point): string {
  const bend = (x2 - x1) / 2
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`
}
