import type { AgentStatus } from '@kpng/api'
import type { ComponentChildren } from 'preact'
import { isSynced, status } from '../data/cluster.js'
import { type Connection, connection, wallClock } from '../data/connection.js'
import { timeOfDay } from '../format.js'
import { Hints } from './hints.js'
import { Pipeline } from './pipeline.js'

// What the page shows while there is nothing else to show, and the bands above what may be out of date.

/** The boxes of the page that is to come. */
export function Loading() {
  return (
    <main class="overview loading" aria-busy="true">
      <h1 class="sr">Services</h1>
      <div class="panel bone low" />
      <p class="reading soft" role="status">
        Asking the agent for its Services …
      </p>
      <div class="split">
        <div class="panel bone" />
        <div class="panel bone" />
      </div>
    </main>
  )
}

export function Empty() {
  return (
    <main class="overview">
      <Pipeline />
      <div class="nothing tall">
        {isSynced(status.value) ? (
          <>
            <h1>No Services yet.</h1>
            <p class="soft">kpng has read everything there is. The first Service shows up here by itself:</p>
            <code>kubectl expose deployment web --port 80</code>
          </>
        ) : (
          <>
            <h1>Which Services there are is not known yet.</h1>
            <p class="soft">kpng waits for its source.</p>
          </>
        )}
      </div>
      <Hints />
    </main>
  )
}

const texts: Readonly<Record<'unreachable' | 'denied' | 'older', readonly [title: string, text: ComponentChildren]>> = {
  unreachable: [
    'The agent does not answer.',
    <>
      Is kpng running? <code>kpng status</code> asks it on the machine itself.
    </>,
  ],
  denied: [
    'The agent does not let you in.',
    <>
      Open the address that kpng printed when it started, with the token at its end, or ask somebody who has it. On the
      machine itself, <code>kpng status</code> needs none.
    </>,
  ],
  older: [
    'This agent is older than the page.',
    <>
      It has no live stream. <code>kpng status</code>, <code>kpng get</code> and <code>kpng explain</code> work with it.
      Upgrade kpng to see it here.
    </>,
  ],
}

export function NoAnswer({ state, sentence }: { readonly state: keyof typeof texts; readonly sentence: string }) {
  const [title, text] = texts[state]
  return (
    <main class="page">
      <div class="nothing tall" role="alert">
        <h1>{title}</h1>
        {sentence && <p>{sentence}</p>}
        <p class="soft">{text}</p>
        <p class="soft num">
          <Retry />
        </p>
      </div>
    </main>
  )
}

export function NotFound({ page }: { readonly page: string }) {
  return (
    <main class="page">
      <div class="nothing tall">
        <h1>There is no page {page}.</h1>
        <a class="plain" href="#/">
          All Services
        </a>
      </div>
    </main>
  )
}

function Retry() {
  const { retryAt } = connection.value
  const seconds = Math.ceil((retryAt - wallClock.value) / 1000)
  return <>{seconds > 0 ? `Next try in ${seconds} s.` : 'Trying …'}</>
}

/** A data plane in the kernel works on. A process that carries the connections itself takes them with it. */
const withoutAgent = (last: AgentStatus | undefined): string =>
  last?.role === 'core'
    ? 'Nodes keep what they have.'
    : last?.features?.mover === undefined
      ? 'If kpng has stopped, its rules keep working in the kernel.'
      : `If kpng has stopped, nobody serves connections: this data plane (${last.backend}) carries them itself.`

/** What may be out of date, and since when. */
export function Bands({ at: { state, since, sentence } }: { readonly at: Connection }) {
  const source = status.value?.source
  return (
    <>
      {state === 'lost' && (
        <div class="band" role="alert">
          <b>The agent does not answer.</b> {sentence} What you see is as of {timeOfDay(since)}.{' '}
          {withoutAgent(status.value)}{' '}
          <span class="num" aria-hidden="true">
            <Retry />
          </span>
        </div>
      )}
      {state === 'live' && !source?.stale && !isSynced(status.value) && (
        <div class="band" role="status">
          <b>Not everything is known yet.</b>{' '}
          {status.value?.role === 'core'
            ? 'The source has not been read completely. Nodes get nothing before that.'
            : 'This kpng has not synced its data plane since it started.'}
        </div>
      )}
      {state === 'live' && source?.stale && (
        <div class="band" role="alert">
          <b>The state may be out of date.</b> {source.reason ?? 'The source does not answer.'} The data plane keeps
          what it has.
        </div>
      )}
    </>
  )
}
