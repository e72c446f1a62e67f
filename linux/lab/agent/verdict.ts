import type { Echo, Outcome } from './protocol.js'

const refusals = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EACCES', 'ENOPROTOOPT'])

/** What an error before any answer means to the client. */
export function outcomeOfError(code: string | undefined, connected: boolean): Outcome {
  if (!connected && refusals.has(code ?? '')) return { outcome: 'refused' }
  if (!connected && code === 'ETIMEDOUT') return { outcome: 'dropped' }
  return { outcome: 'broken', how: code ?? 'closed' }
}

export function outcomeOfAnswer(text: string): Outcome {
  try {
    const { server, from, port } = JSON.parse(text) as Echo
    return { outcome: 'reached', server, from, port }
  } catch {
    return { outcome: 'broken', how: `answered ${JSON.stringify(text.slice(0, 40))}` }
  }
}

/** The question that an answer belongs to. */
export const questionOf = (answer: string): string => (JSON.parse(answer) as Echo).question

/**
 * Calls back after a time, but reads first what has already arrived. On a busy machine the answer may be in the socket when the timer
 * fires late, and that is not a drop.
 */
export function afterUnread(ms: number, callback: () => void): () => void {
  let immediate: NodeJS.Immediate | undefined
  const timer = setTimeout(() => {
    immediate = setImmediate(() => {
      immediate = setImmediate(callback)
    })
  }, ms)
  return () => {
    clearTimeout(timer)
    clearImmediate(immediate)
  }
}
