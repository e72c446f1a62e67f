import type { KubernetesObject } from '../cases/case.js'

/** Hands the objects of a round to the proxy under test. */
export interface Feed {
  /** Values for placeholders in the proxy's command. */
  readonly placeholders: Readonly<Record<string, string>>
  /** Makes `objects` all there is. `canary` must not be seen before them. */
  apply(objects: readonly KubernetesObject[], canary: readonly KubernetesObject[]): Promise<void>
  /** Takes away what was fed. */
  close(): Promise<void>
}
