/** Calls something after a time. What is returned takes that back. */
export type Later = (ms: number, call: () => void) => () => void

/** Node's timers hold 24.8 days at most; a longer time means for ever. */
export const longestTimerMs = 2 ** 31 - 1

/** By a timer of Node. It does not keep the process running. */
export const later: Later = (ms, call) => {
  const timer = setTimeout(call, ms).unref()
  return () => clearTimeout(timer)
}
