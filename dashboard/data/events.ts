// Server-sent events over fetch. EventSource hides the status of a refused request, and the page has a sentence for each of them.

export interface ServerEvent {
  readonly name: string
  readonly data: string
  /** Empty: the event has none. */
  readonly id: string
}

/** Splits text into events, whatever its pieces are. A piece that ends in the middle of an event is kept for the next. */
export class EventParser {
  #pieces: string[] = []
  readonly #onEvent: (event: ServerEvent) => void

  constructor(onEvent: (event: ServerEvent) => void) {
    this.#onEvent = onEvent
  }

  push(piece: string): void {
    // The end of an event is two line feeds, which may come in two pieces.
    const last = this.#pieces.at(-1)
    const isSplit = piece.startsWith('\n') && last?.endsWith('\n')
    if (!isSplit && !piece.includes('\n\n')) {
      if (piece !== '') this.#pieces.push(piece)
      return
    }
    const blocks = [...this.#pieces, piece].join('').split('\n\n')
    const rest = blocks.pop() ?? ''
    this.#pieces = rest === '' ? [] : [rest]
    for (const block of blocks) this.#read(block)
  }

  #read(block: string): void {
    let name = 'message'
    let id = ''
    const data: string[] = []
    for (const line of block.split('\n')) {
      const colon = line.indexOf(':')
      if (colon <= 0) continue
      const value = line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
      const field = line.slice(0, colon)
      if (field === 'event') name = value
      else if (field === 'id') id = value
      else if (field === 'data') data.push(value)
    }
    if (data.length > 0) this.#onEvent({ name, id, data: data.join('\n') })
  }
}

/** An answer with a status of 400 and above. */
export class AgentError extends Error {
  readonly status: number

  constructor(status: number, sentence: string) {
    super(sentence)
    this.status = status
  }
}

/** The error of an answer that is not ok, with the agent's own sentence if it has one. */
export async function errorOf(response: Response): Promise<AgentError> {
  let sentence = `The agent answers with status ${response.status}.`
  try {
    const { error } = (await response.json()) as { error?: unknown }
    if (typeof error === 'string') sentence = error
  } catch {
    // No JSON: another server answers, or a proxy between.
  }
  return new AgentError(response.status, sentence)
}

export interface ReadOptions {
  /** Of the last event that was read; empty: from the start. */
  readonly lastEventId: string
  readonly signal: AbortSignal
  readonly onEvent: (event: ServerEvent) => void
  /** With each piece, also one without an event. */
  readonly onHeard: () => void
}

/** Reads events until the stream ends. Rejects if it cannot be opened (`AgentError` if it is refused), or breaks. */
export async function readEvents(url: string, { lastEventId, signal, onEvent, onHeard }: ReadOptions): Promise<void> {
  const headers = { Accept: 'text/event-stream', ...(lastEventId === '' ? {} : { 'Last-Event-ID': lastEventId }) }
  const response = await fetch(url, { headers, signal, cache: 'no-store' })
  if (!response.ok || !response.body) throw await errorOf(response)
  const parser = new EventParser(onEvent)
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    onHeard()
    parser.push(value)
  }
}
