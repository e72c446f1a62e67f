/**
 * One string for equal texts. Names of nodes and zones come with each of half a million endpoints; parsed anew each time they
 * would be half a million strings. Forgets everything when it has grown past any cluster's size, which only costs sharing.
 */
export function internTable(maxEntries = 100_000): (text: string) => string {
  const table = new Map<string, string>()
  return (text) => {
    const known = table.get(text)
    if (known !== undefined) return known
    if (table.size >= maxEntries) table.clear()
    table.set(text, text)
    return text
  }
}
