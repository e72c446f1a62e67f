import { useEffect, useState } from 'preact/hooks'
import { nodeName } from '../route.js'
import { connection } from './connection.js'
import { errorOf } from './events.js'

// Questions to the agent beside the stream.

/** Asks once. Rejects with an `AgentError` if the agent refuses. */
export async function ask<Answer>(path: string, query: Record<string, string>, signal?: AbortSignal): Promise<Answer> {
  const asked = new URLSearchParams(nodeName === '' ? query : { ...query, node: nodeName })
  const url = asked.size === 0 ? path : `${path}?${asked}`
  const response = await fetch(url, { cache: 'no-store', ...(signal ? { signal } : {}) })
  if (!response.ok) throw await errorOf(response)
  return (await response.json()) as Answer
}

export interface Asked<Answer> {
  /** Undefined: not answered yet. An old answer stays while the same question is asked again. */
  readonly answer: Answer | undefined
  /** By local time; 0: never. */
  readonly answeredAt: number
  readonly error: Error | undefined
}

export interface AskOptions {
  /** Asks again when it changes. */
  readonly revision: string
  /** Asks again this often while the page is seen. */
  readonly everyMs: number
}

/** Keeps an answer up to date. Nothing is asked while the page is hidden or the agent does not answer. */
export function useAnswer<Answer>(
  path: string,
  query: Record<string, string>,
  { revision, everyMs }: AskOptions,
): Asked<Answer> {
  const question = `${path}?${new URLSearchParams(query)}`
  const [asked, setAsked] = useState<Asked<Answer> & { readonly question: string }>({
    ...{ question, answer: undefined, answeredAt: 0, error: undefined },
  })
  const isLive = connection.value.state === 'live'
  useEffect(() => {
    if (!isLive) return
    const stop = new AbortController()
    const askNow = async () => {
      if (document.hidden) return
      try {
        const answer = await ask<Answer>(path, query, stop.signal)
        setAsked({ question, answer, answeredAt: Date.now(), error: undefined })
      } catch (error) {
        if (!stop.signal.aborted) setAsked({ question, answer: undefined, answeredAt: 0, error: error as Error })
      }
    }
    askNow()
    const timer = setInterval(askNow, everyMs)
    return () => {
      stop.abort()
      clearInterval(timer)
    }
  }, [question, revision, everyMs, isLive])
  return asked.question === question ? asked : { answer: undefined, answeredAt: 0, error: undefined }
}
