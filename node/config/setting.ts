import type { Kind } from './kinds.js'

/** One thing that can be set: where it stands in a KubeProxyConfiguration, which flag sets it, and what it is otherwise. */
export interface Setting<T> {
  readonly kind: Kind<T>
  /** In the file. Several: one for each mode's section (`sections.ts` says which of them counts). */
  readonly paths: readonly [string, ...string[]]
  /** Of the command line, without the dashes; kube-proxy's name wherever it has one. */
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
