import { effect } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { allRows, shape, takeChangedRows, version } from '../data/cluster.js'
import { test } from '../data/shown.js'
import type { Row } from '../model/rows.js'
import { stateTexts } from '../model/states.js'
import { goTo, serviceHref } from '../route.js'
import { Glyph } from './glyph.js'
import { rowAt } from './map-layout.js'
import { MapPainter } from './map-painter.js'
import { colours } from './paint.js'
import type { Size } from './size.js'

const fadeMs = 400
/** The list follows each key of the search box. The map follows after a short rest, so that it does not delay the next key. */
const filterMs = 160
const tipWidth = 250

/** All Services at once, one cell each. The list beside it says the same in words, and has the keyboard. */
export function ServiceMap({ width, height }: Size) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const painter = useRef<MapPainter>(undefined)
  const [pointed, setPointed] = useState<Pointed | undefined>(undefined)

  useEffect(() => {
    if (width < 60 || !canvas.current) return
    const map = new MapPainter(canvas.current)
    painter.current = map
    return follow(map, { width, height })
  }, [width, height])

  const rowUnder = ({ offsetX, offsetY }: MouseEvent): Row | undefined => {
    const map = painter.current
    const index = map && rowAt(map.layout, offsetX, offsetY)
    return index === undefined ? undefined : map?.rowAt(index)
  }
  return (
    <div class="map-box">
      <canvas
        ref={canvas}
        class="map"
        role="img"
        aria-label="Every Service as one cell, by namespace. The list beside it says the same in words."
        onPointerMove={(event) => {
          const row = rowUnder(event)
          setPointed(row && { row, x: event.offsetX, y: event.offsetY })
        }}
        onPointerLeave={() => setPointed(undefined)}
        onClick={(event) => {
          const row = rowUnder(event)
          if (row) goTo(serviceHref(row.key))
        }}
      />
      {pointed && <Tip {...pointed} isFarRight={width - pointed.x < tipWidth} />}
    </div>
  )
}

interface Pointed {
  readonly row: Row
  readonly x: number
  readonly y: number
}

function Tip({ row: { service }, x, y, isFarRight }: Pointed & { readonly isFarRight: boolean }) {
  return (
    <div class="tip" style={{ transform: `translate(${isFarRight ? x - tipWidth : x + 14}px, ${y + 14}px)` }}>
      <b>{service.name}</b> <span class="soft">{service.namespace}</span>
      <div>
        <Glyph state={service.verdict} /> {stateTexts[service.verdict].label} · {service.endpoints}
        {service.total === undefined ? '' : ` of ${service.total}`} used
      </div>
      {service.reason && <div class="soft">{service.reason}</div>}
    </div>
  )
}

/** Keeps the map up to date. Returns the function that ends it. */
function follow(map: MapPainter, { width, height }: Size): () => void {
  let filtering: ReturnType<typeof setTimeout> | undefined
  let fading: ReturnType<typeof setTimeout> | undefined
  const fade = () => {
    fading = map.fade(test.peek()) ? setTimeout(fade, fadeMs) : undefined
  }
  const ends = [
    effect(() => {
      void shape.value
      void colours.value
      takeChangedRows()
      map.place(allRows(), width, height)
      map.draw(test.peek())
    }),
    effect(() => {
      void test.value
      clearTimeout(filtering)
      filtering = setTimeout(() => map.draw(test.peek()), filterMs)
    }),
    effect(() => {
      void version.value
      map.drawRows(takeChangedRows(), test.peek())
      clearTimeout(fading)
      fade()
    }),
  ]
  return () => {
    clearTimeout(filtering)
    clearTimeout(fading)
    for (const end of ends) end()
  }
}
