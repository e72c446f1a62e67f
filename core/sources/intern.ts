/**
 * Returns one string for equal texts. The names of nodes and zones come with each of half a million endpoints, and would be half a
 * million strings. When the table is larger than any cluster, it forgets everything, which only costs some memory.
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
