/** What /statusz is about. */
export interface StatuszFacts {
  /** Of kpng. */
  readonly version: string
  /** Unix time in milliseconds. */
  readonly startedMs: number
  /** Further lines, such as the node's name or when the last sync was. Default none. */
  readonly lines?: () => { readonly [name: string]: string | number | boolean }
  /** Unix time in milliseconds. Default Date.now. */
  readonly now?: () => number
}

const header = (page: string) =>
  `\nkpng ${page}\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n\n`

export function statuszText(
  { version, startedMs, lines, now = Date.now }: StatuszFacts,
  paths: readonly string[],
): string {
  const facts = {
    Started: new Date(startedMs).toISOString(),
    Up: upTime(now() - startedMs),
    'Node version': process.version,
    'Binary version': version,
    ...lines?.(),
    Paths: paths.join(' '),
  }
  const body = Object.entries(facts).map(([name, value]) => `${name}: ${value}\n`)
  return header('statusz') + body.join('')
}

export function flagzText(flags: { readonly [flag: string]: string }): string {
  const lines = Object.keys(flags)
    .sort()
    .map((flag) => `${flag}=${flags[flag]}\n`)
  return header('flagz') + lines.join('')
}

function upTime(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  return `${Math.floor(seconds / 3600)} hr ${Math.floor(seconds / 60) % 60} min ${seconds % 60} sec`
}
