import { computed, signal } from '@preact/signals'
import { nodeName } from '../route.js'
import { agentTime, takeChanges, takePulse, takeSnapshot } from './cluster.js'
import { AgentError, readEvents, type ServerEvent } from './events.js'
import { TypingPause } from './typing.js'

/**
 * The connection to the agent.
 *
 * - `loading`: the first snapshot has not come yet.
 * - `live`: events come.
 * - `lost`: events came, and no more do. What is known stays, in grey.
 * - `unreachable`: nobody has answered yet.
 * - `denied`: the agent does not let this page in (401, 403).
 * - `older`: the agent has no live stream (404).
 * In all but the first two the next try is at `retryAt`.
 */
export interface Connection {
  readonly state: 'loading' | 'live' | 'lost' | 'unreachable' | 'denied' | 'older'
  /** Local time: for `lost`, when the last event came. */
  readonly since: number
  /** Local time; 0: trying. */
  readonly retryAt: number
  /** The agent's own words. */
  readonly sentence: string
}

/** An agent sends a pulse each second. */
const silenceMs = 5000
/** An agent without pulses sends a comment every 15 seconds. */
const longSilenceMs = 40_000
const firstRetryMs = 1000
const longestRetryMs = 15_000

export const connection = signal<Connection>({ state: 'loading', since: Date.now(), retryAt: 0, sentence: '' })

const localTime = signal(Date.now())
setInterval(() => {
  localTime.value = Date.now()
}, 1000)

/** This machine's clock, in steps of a second. */
export const wallClock = computed(() => localTime.value)

/** The agent's clock, in steps of a second. It stands still while the connection is lost. */
export const agentClock = computed(() => {
  const { state, since } = connection.value
  return agentTime(state === 'lost' ? since : localTime.value)
})

const events = new TypingPause(take)
let lastEventId = ''
let hasPulse = false
let retryMs = firstRetryMs
let heardAt = Date.now()

/** Reads the stream for as long as the page is open. */
export async function stayConnected(): Promise<never> {
  const url = nodeName === '' ? 'v1/stream' : `v1/stream?node=${encodeURIComponent(nodeName)}`
  for (;;) {
    const error = await readOnce(url).then(
      () => undefined,
      (reason: unknown) => reason,
    )
    const { state, since } = connection.peek()
    const wasLive = state === 'live' || state === 'lost'
    connection.value = {
      state: wasLive ? 'lost' : stateAfter(error),
      since: state === 'live' ? heardAt : since,
      retryAt: Date.now() + retryMs,
      sentence: error instanceof AgentError ? error.message : '',
    }
    await new Promise((resolve) => setTimeout(resolve, retryMs))
    connection.value = { ...connection.peek(), retryAt: 0 }
    retryMs = Math.min(retryMs * 2, longestRetryMs)
  }
}

function stateAfter(error: unknown): Connection['state'] {
  if (!(error instanceof AgentError)) return 'unreachable'
  if (error.status === 401 || error.status === 403) return 'denied'
  return error.status === 404 ? 'older' : 'unreachable'
}

async function readOnce(url: string): Promise<void> {
  const stop = new AbortController()
  let timer = setTimeout(() => stop.abort(), longSilenceMs)
  const onHeard = () => {
    heardAt = Date.now()
    clearTimeout(timer)
    timer = setTimeout(() => stop.abort(), hasPulse ? silenceMs : longSilenceMs)
  }
  if (hasPulse) onHeard()
  try {
    await readEvents(url, { lastEventId, signal: stop.signal, onEvent: (event) => events.push(event), onHeard })
  } finally {
    clearTimeout(timer)
  }
}

function take({ name, data, id }: ServerEvent): void {
  const sent = JSON.parse(data)
  if (name === 'snapshot') takeSnapshot(sent)
  else if (name === 'changes') takeChanges(sent)
  else if (name === 'pulse') {
    hasPulse = true
    takePulse(sent)
  }
  if (id !== '') lastEventId = id
  retryMs = firstRetryMs
  if (connection.peek().state !== 'live') {
    connection.value = { state: 'live', since: Date.now(), retryAt: 0, sentence: '' }
  }
}
