/** The resident set. Undefined if it cannot be read: that opens a file, and the process may have too many open. */
export function residentBytes(): number | undefined {
  try {
    return process.memoryUsage.rss()
  } catch {
    return undefined
  }
}
