import type { RefObject } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

export interface Size {
  readonly width: number
  readonly height: number
}

/** The inner size of an element, followed as it changes. */
export function useSize<Box extends HTMLElement>(): [RefObject<Box | null>, Size] {
  const ref = useRef<Box>(null)
  const [size, setSize] = useState<Size>({ width: 0, height: 0 })
  useLayoutEffect(() => {
    const element = ref.current
    if (!element) return
    const measure = () => setSize({ width: element.clientWidth, height: element.clientHeight })
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    measure()
    return () => observer.disconnect()
  }, [])
  return [ref, size]
}
