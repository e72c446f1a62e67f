import type { SyncStep } from '@kpng/client'

/** What is said of a step. May be added to until the step has ended. */
export type StepAttributes = Record<string, string | number | boolean>

const unixMs = (): number => performance.timeOrigin + performance.now()

/** Does a part of a sync. Where the sync is traced, the part is added to its steps, even when it failed. */
export async function asStep<Result>(
  steps: SyncStep[] | undefined,
  name: string,
  attributes: StepAttributes,
  work: () => Promise<Result>,
): Promise<Result> {
  if (!steps) return await work()
  const startedAtMs = unixMs()
  try {
    return await work()
  } finally {
    steps.push({ name, startedAtMs, endedAtMs: unixMs(), attributes })
  }
}
