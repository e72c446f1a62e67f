const hidden = '<left out>'

/** What looks like a secret, and what takes its place. Collected files hold no secrets on purpose; this is for logs and comments. */
const patterns: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, hidden],
  // JSON web tokens, such as those of service accounts.
  [/\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*/g, hidden],
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{6,}/gi, `$1 ${hidden}`],
  // user:password@ in URLs.
  [/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@:]+:[^\s/@]+@/gi, `$1${hidden}@`],
  [
    /((?:["']?[\w-]*(?:token|password|passwd|secret|api[_-]?key|client-key-data|credential)["']?)\s*[:=]\s*["']?)[^\s"',;&]{4,}/gi,
    `$1${hidden}`,
  ],
]

/** A text without what looks like a secret. */
export const withoutSecrets = (text: string): string =>
  patterns.reduce((result, [pattern, replacement]) => result.replace(pattern, replacement), text)

/** The only variables that a bundle shows. */
const shownVariables = [
  'NODE_NAME',
  'POD_NAMESPACE',
  'KUBERNETES_SERVICE_HOST',
  'KUBERNETES_SERVICE_PORT',
  'LANG',
  'TZ',
]

export const environmentText = (env: NodeJS.ProcessEnv): string =>
  shownVariables.flatMap((name) => (env[name] === undefined ? [] : [`${name}=${env[name]}\n`])).join('')
