import type { Kind } from './kinds.js'

/** One setting: its place in a KubeProxyConfiguration, its flag, and its default. */
export interface Setting<T> {
  readonly kind: Kind<T>
  /** In the file. Several: one for each mode's section (`sections.ts` says which of them counts). */
  readonly paths: readonly [string, ...string[]]
  /** Without the dashes; kube-proxy's name if it has one. */
  readonly flag: string
  readonly summary: string
  /** As kube-proxy has it. */
  readonly fallback: T
}

export const setting = <T>(
  path: string | readonly [string, ...string[]],
  flag: string,
  summary: string,
  kind: Kind<T>,
  fallback: T,
): Setting<T> => ({
  kind,
  paths: typeof path === 'string' ? [path] : path,
  flag,
  summary,
  fallback,
})
