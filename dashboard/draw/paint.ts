import { signal } from '@preact/signals'
import { recall, remember } from '../data/storage.js'

// Colours and sizes for canvases.

export type Theme = 'auto' | 'light' | 'dark'

/** Grows when colours change. */
export const colours = signal(0)

/** Whether somebody asked for less motion. */
export const isStill = matchMedia('(prefers-reduced-motion: reduce)')

let known = new Map<string, string>()

/** A colour of the style sheet, as a canvas takes it: `colour('ink-2')`. */
export const colour = (name: string): string => resolved(`var(--${name})`)

/** One colour over another, without transparency. */
export const mixed = (name: string, share: number, under: string): string =>
  resolved(`color-mix(in srgb, var(--${name}) ${share * 100}%, var(--${under}))`)

function resolved(text: string): string {
  const cached = known.get(text)
  if (cached !== undefined) return cached
  const probe = document.createElement('i')
  probe.style.color = text
  // The colours of the style sheet fit forced colours already: see tokens.css.
  probe.style.setProperty('forced-color-adjust', 'none')
  document.body.append(probe)
  const value = getComputedStyle(probe).color
  probe.remove()
  known.set(text, value)
  return value
}

function forgetColours(): void {
  known = new Map()
  colours.value++
}
for (const media of ['(prefers-color-scheme: dark)', '(forced-colors: active)']) {
  matchMedia(media).addEventListener('change', forgetColours)
}

export const themeNow = (): Theme => (document.documentElement.dataset.theme as Theme | undefined) ?? 'auto'

export function setTheme(theme: Theme): void {
  if (theme === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
  remember('theme', theme)
  forgetColours()
}

export function restoreTheme(): void {
  const kept = recall('theme')
  if (kept === 'light' || kept === 'dark') document.documentElement.dataset.theme = kept
}

/** Sizes a canvas in CSS pixels. The context then draws in CSS pixels too. */
export function fitCanvas(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = devicePixelRatio || 1
  const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)]
  if (canvas.width !== across || canvas.height !== down) {
    canvas.width = across
    canvas.height = down
  }
  const context = canvas.getContext('2d') as CanvasRenderingContext2D
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  return context
}

/** Small text, as the rest of the page has it. */
export const labelFont = (weight = 400): string => `${weight} 10.5px ${getComputedStyle(document.body).fontFamily}`
