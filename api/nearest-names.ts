/** The known names that a mistyped one may stand for, the most likely first. None if none is near. */
export function nearestNames(given: string, known: readonly string[]): string[] {
  const word = given.toLowerCase()
  const mostEdits = word.length < 4 ? 1 : Math.max(2, Math.floor(word.length / 3))
  return (
    known
      // Each letter more or less is an edit: most names need no closer look.
      .filter((name) => Math.abs(name.length - word.length) <= mostEdits)
      .map((name) => ({ name, edits: editsBetween(word, name.toLowerCase()) }))
      .filter(({ edits }) => edits <= mostEdits)
      .sort((a, b) => a.edits - b.edits)
      .map(({ name }) => name)
  )
}

/** Levenshtein distance. */
function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (const [index, letter] of [...a].entries()) {
    const next = [index + 1]
    for (const [at, other] of [...b].entries()) {
      const replaced = (row[at] ?? 0) + (letter === other ? 0 : 1)
      next.push(Math.min(replaced, (row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
