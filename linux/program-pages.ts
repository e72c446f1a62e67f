import { readFile, readlink } from 'node:fs/promises'
import { loadLibc } from './libc.js'

/** Addresses of this process. */
interface AddressRange {
  readonly from: number
  readonly to: number
}

const MADV_DONTNEED = 4

/**
 * Removes the pages of Node's program file from the resident set. Most of them are needed only at the start. They stay in the kernel's page
 * cache, from where the kernel maps those again that are used later. Does nothing on other systems than Linux.
 */
export async function releaseProgramPages(): Promise<void> {
  if (process.platform !== 'linux') return
  const { madvise } = await loadLibc()
  const [program, mappings] = await Promise.all([readlink('/proc/self/exe'), readFile('/proc/self/smaps', 'utf8')])
  for (const { from, to } of unchangedPages(mappings, program)) madvise(from, to - from, MADV_DONTNEED)
}

const firstLine = /^([\da-f]+)-([\da-f]+) (\S+) \S+ \S+ \S+ +(.*)$/

/**
 * The mappings of a file that are as in the file. A page that the process has changed is only in its memory (`Anonymous`), and would be lost.
 * @param mappings as in /proc/<pid>/smaps
 */
export function unchangedPages(mappings: string, file: string): AddressRange[] {
  const found: AddressRange[] = []
  let current: AddressRange | undefined
  for (const line of mappings.split('\n')) {
    const [isFirst, from = '', to = '', rights = '', path] = firstLine.exec(line) ?? []
    if (isFirst) {
      const isReadOnly = path === file && !rights.includes('w')
      current = isReadOnly ? { from: Number.parseInt(from, 16), to: Number.parseInt(to, 16) } : undefined
    } else if (current && /^Anonymous: +0 kB$/.test(line)) found.push(current)
  }
  return found
}
