/** Whether a name matches one of the patterns, where `*` stands for anything. */
export function matchesAny(patterns: readonly string[], name: string): boolean {
  return patterns.some((pattern) => toRegExp(pattern).test(name))
}

const toRegExp = (pattern: string): RegExp =>
  new RegExp(
    `^${pattern
      .split('*')
      .map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
      .join('.*')}$`,
  )
