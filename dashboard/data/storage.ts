// What the browser remembers of this page. Storage may be forbidden: what is remembered then lasts as long as the page.

/** Undefined: nothing is remembered. */
export function recall(name: string): string | undefined {
  try {
    return localStorage.getItem(`kpng-${name}`) ?? undefined
  } catch {
    return undefined
  }
}

export function remember(name: string, value: string): void {
  try {
    localStorage.setItem(`kpng-${name}`, value)
  } catch {
    // As above.
  }
}
