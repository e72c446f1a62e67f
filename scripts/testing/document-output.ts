// What differs from one reader to the next, and from one run to the next: addresses, times, the ends of generated names.
const varying: readonly [RegExp, string][] = [
  [/\b\d{1,3}(\.\d{1,3}){3}\b/g, 'IP'],
  [/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME'],
  [/\b\d+(\.\d+)? ?(ms|s|m|h)\b/g, 'DURATION'],
  [/-[a-z0-9]{10}-[a-z0-9]{5}\b/g, '-GENERATED'],
]

function normalized(text: string): string {
  const lines = varying.reduce((rest, [pattern, name]) => rest.replace(pattern, name), text).split('\n')
  return lines
    .map((line) => line.trim().replace(/\s+/g, ' '))
    .join('\n')
    .trim()
}

/** Whether a command printed what its document shows. `…` stands for anything, also for several lines. */
export function isPrinted(shown: string, printed: string): boolean {
  const parts = normalized(shown).split('…')
  const pattern = parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('[\\s\\S]*')
  return new RegExp(`^${pattern}$`).test(normalized(printed))
}
