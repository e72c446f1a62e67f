import type { SyncStep } from './backend.js'

/** The attributes of a step. More may be added until the step ends. */
export type StepAttributes = Record<string, string | number | boolean>

const unixMs = (): number => performance.timeOrigin + performance.now()

/** Runs a part of a sync. If the sync is traced, the part is recorded as a step, even if it fails. */
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
