import type { LiveSync } from '@kpng/api'
import { useRef, useState } from 'preact/hooks'
import { allSyncs, status, syncCount } from '../data/cluster.js'
import { Scatter } from '../draw/scatter.js'
import { count, milliseconds, timeOfDay } from '../format.js'
import { changeText, mainService, otherServices, ownSpans, totalMs } from '../model/spans.js'
import { SpanBars } from '../parts/bars.js'
import { ServiceName } from '../parts/name.js'
import { VirtualList } from '../parts/virtual-list.js'
import { changeHref, goTo } from '../route.js'
import { Waterfall } from './waterfall.js'

/** What changed, newest first, and where the time went. While somebody points at the list or reads a change, it holds still. */
export function ChangesPage({ number }: { readonly number: number | undefined }) {
  const [isHeld, setHeld] = useState(false)
  const [onlyFailed, setOnlyFailed] = useState(false)
  const kept = useRef<{ syncs: readonly LiveSync[]; seen: number }>({ syncs: [], seen: 0 })
  const seen = syncCount.value
  const isFrozen = (isHeld || number !== undefined) && kept.current.syncs.length > 0
  if (!isFrozen && kept.current.seen !== seen) kept.current = { syncs: allSyncs().toReversed(), seen }
  const { syncs } = kept.current
  const shown = onlyFailed ? syncs.filter(({ error }) => error !== undefined) : syncs
  const chosen = number === undefined ? undefined : (syncs.find((sync) => sync.number === number) ?? find(number))
  const newer = isFrozen ? seen - kept.current.seen : 0
  const showNewer = () => {
    kept.current = { syncs: [], seen: 0 }
    setHeld(false)
    goTo('#/changes')
  }
  return (
    <main class="page changes">
      <h1 class="sr">Changes</h1>
      <section class="panel" aria-label="Changes over time">
        <header class="bar">
          <h2>{status.value?.role === 'core' ? 'Event to store' : 'Event to data plane'}</h2>
          <span class="soft">a dot for each sync; a cross failed</span>
        </header>
        <Scatter syncs={syncs} chosen={chosen?.number} />
      </section>
      <div class={number === undefined ? 'split one' : 'split wide-left'}>
        <section class="panel list" aria-label="Changes">
          <header class="bar">
            <h2>Changes</h2>
            {newer > 0 ? (
              <button type="button" class="plain newer" onClick={showNewer}>
                {count(newer)} newer
              </button>
            ) : (
              <span class="soft small">newest first</span>
            )}
            <SpanKey />
            <label class="small">
              <input
                type="checkbox"
                checked={onlyFailed}
                onChange={({ currentTarget }) => setOnlyFailed(currentTarget.checked)}
              />{' '}
              failed only
            </label>
          </header>
          {shown.length === 0 ? (
            <Nothing onlyFailed={onlyFailed} />
          ) : (
            <VirtualList
              id="changes"
              label="Changes"
              items={shown}
              rowHeight={38}
              onHold={setHeld}
              row={(sync) => <ChangeRow sync={sync} isChosen={sync === chosen} />}
            />
          )}
        </section>
        {chosen && <Waterfall sync={chosen} />}
        {number !== undefined && !chosen && (
          <section class="panel waterfall" aria-label="Where the time went">
            <p class="soft">Sync {count(number)} is no longer among those that this page knows.</p>
          </section>
        )}
      </div>
    </main>
  )
}

const find = (number: number) => allSyncs().find((sync) => sync.number === number)

function ChangeRow({ sync, isChosen }: { readonly sync: LiveSync; readonly isChosen: boolean }) {
  const service = mainService(sync)
  const others = otherServices(sync)
  const classes = ['change-row', isChosen ? 'on' : '', sync.error === undefined ? '' : 'failed']
  return (
    <a class={classes.join(' ')} href={changeHref(sync.number)} aria-current={isChosen ? 'true' : undefined}>
      <span class="soft num">{timeOfDay(Date.parse(sync.at))}</span>
      <span class="row-name">
        {service === undefined ? <b>{sync.full ? 'everything' : '–'}</b> : <ServiceName of={service} />}
        {others > 0 && <span class="soft"> +{count(others)}</span>}
      </span>
      <span class="change-text">{sync.error === undefined ? changeText(sync) : `✕ failed: ${sync.error}`}</span>
      <SpanBars sync={sync} />
      <span class="num change-ms">{milliseconds(totalMs(sync))}</span>
    </a>
  )
}

function SpanKey() {
  return (
    <ul class="span-key small push" aria-label="Spans">
      {ownSpans.map((name) => (
        <li key={name}>
          <svg viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
            <rect width="10" height="10" rx="2" class={`span-${name}`} />
          </svg>
          {name}
        </li>
      ))}
    </ul>
  )
}

function Nothing({ onlyFailed }: { readonly onlyFailed: boolean }) {
  const isCore = status.value?.role === 'core'
  return (
    <div class="nothing">
      <p>
        <b>{onlyFailed ? 'No sync failed.' : 'Nothing has changed yet.'}</b>
      </p>
      <p class="soft">
        {isCore ? 'What changes in the cluster shows up here.' : 'What changes for this node shows up here.'}
      </p>
    </div>
  )
}
