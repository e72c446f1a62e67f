import type { AgentStatus } from '@kpng/api'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { allSyncs, endpointTotal, nodes, stateCounts, status, syncCount } from '../data/cluster.js'
import { agentClock } from '../data/connection.js'
import { isStill } from '../draw/paint.js'
import { ago, count, counted, duration, milliseconds } from '../format.js'
import { median, medianOf, type SpanName, spanTexts, totalMs } from '../model/spans.js'
import { nodeName } from '../route.js'

/** Times between stations are the median of this many syncs: those of the last one alone would flicker. */
const averaged = 100

/** source → store → view → data plane: what each knows, and how long a change takes from one to the next. A core has no data plane. */
export function Pipeline() {
  const now = status.value
  if (!now) return null
  return (
    <section class="panel flow" aria-label="From the source to the data plane">
      <ol>
        <Source status={now} />
        <Hop span="source" delay={0} />
        <Store status={now} />
        <Hop span="store" delay={1} />
        {now.role === 'core' ? (
          nodeName === '' ? (
            <Nodes />
          ) : (
            <View status={now} />
          )
        ) : (
          <>
            <View status={now} />
            <Hop span="view" delay={2} />
            <DataPlane status={now} />
            <Total />
          </>
        )}
      </ol>
    </section>
  )
}

interface StationProps {
  readonly name: string
  readonly title: ComponentChildren
  readonly children: ComponentChildren
}

function Station({ name, title, children }: StationProps) {
  return (
    <li class="station">
      <span class="eyebrow">{name}</span>
      <b class="station-title">{title}</b>
      <div class="station-facts soft">{children}</div>
    </li>
  )
}

function Hop({ span, delay }: { readonly span: SpanName; readonly delay: number }) {
  const dot = useRef<HTMLElement>(null)
  const isMoving = useRef(false)
  const seen = syncCount.value
  useEffect(() => {
    if (!dot.current || isStill.matches || document.hidden || isMoving.current) return
    isMoving.current = true
    const moved = dot.current.animate(
      [
        { transform: 'none', opacity: 0 },
        { opacity: 1, offset: 0.2 },
        { opacity: 1, offset: 0.8 },
        { transform: 'translateX(100%)', opacity: 0 },
      ],
      { duration: 620, delay: delay * 210, easing: 'cubic-bezier(.45,0,.3,1)' },
    )
    const done = () => {
      isMoving.current = false
    }
    moved.onfinish = done
    moved.oncancel = done
  }, [seen])
  const took = medianOf(allSyncs().slice(-averaged), span)
  return (
    <li class="hop" title={spanTexts[span]}>
      <span class="num">{took === undefined ? '' : milliseconds(took)}</span>
      <span class="rail" aria-hidden="true">
        <i ref={dot} />
      </span>
      <span class="sr">{spanTexts[span]}</span>
    </li>
  )
}

function Source({ status: { source } }: { readonly status: AgentStatus }) {
  if (!source)
    return (
      <Station name="source" title="not watched">
        such as a file, or a playground
      </Station>
    )
  const watches = Object.entries(source.watches)
  const lost = watches.filter(([, { connected }]) => !connected).map(([name]) => name)
  const since = Math.max(...watches.map(([, { since: at }]) => Date.parse(at)))
  const heard = Math.max(...watches.map(([, { lastEvent = '' }]) => Date.parse(lastEvent) || 0))
  const isCore = watches.some(([name]) => name === 'core')
  return (
    <Station name="source" title={isCore ? 'a core' : 'Kubernetes API'}>
      {source.stale || lost.length > 0 ? (
        <b class="state-refused">{source.stale ? 'the state is stale' : `no connection: ${lost.join(', ')}`}</b>
      ) : (
        <span>connected {watches.length > 0 ? duration(agentClock.value - since) : ''}</span>
      )}
      <span>{heard > 0 ? `last event ${ago(agentClock.value - heard)}` : 'no event yet'}</span>
    </Station>
  )
}

function Store({ status: { core, services, skippedObjects } }: { readonly status: AgentStatus }) {
  const endpoints = endpointTotal.value
  return (
    <Station name="store" title={core ? `revision ${count(core.revision)}` : counted(services, 'Service')}>
      <span>
        {core ? `${counted(services, 'Service')}, ` : ''}
        {endpoints === undefined ? 'endpoints of this node only' : counted(endpoints, 'endpoint')}
      </span>
      <span>
        {skippedObjects === 0 ? 'every object could be used' : `${counted(skippedObjects, 'object')} skipped`}
      </span>
    </Station>
  )
}

function View({ status: { node, endpoints, lastSync, role } }: { readonly status: AgentStatus }) {
  if (role === 'core') {
    return (
      <Station name="view" title={nodeName}>
        <span>{counted(endpoints, 'endpoint')} used there</span>
        <span>its own kpng knows its data plane</span>
      </Station>
    )
  }
  return (
    <Station name="view" title={node}>
      <span>{counted(endpoints, 'endpoint')} used here</span>
      <span>{lastSync ? `last change ${ago(agentClock.value - Date.parse(lastSync.at))}` : 'no change yet'}</span>
    </Station>
  )
}

function DataPlane({ status: { backend = 'unknown', frontends, lastSync, drift } }: { readonly status: AgentStatus }) {
  const { differs } = stateCounts.value
  return (
    <Station name="data plane" title={backend}>
      <span>{counted(frontends, 'address with a port', 'addresses with ports')}</span>
      {lastSync?.error !== undefined ? (
        <b class="state-refused">the last sync failed, trying again</b>
      ) : drift ? (
        <b class="state-differs" title={drift.reason}>
          changed by another program, repair due
        </b>
      ) : differs > 0 ? (
        <b class="state-differs">
          {differs} {differs === 1 ? 'differs' : 'differ'}, repair due
        </b>
      ) : (
        <span>{lastSync ? 'as it should be' : 'nothing written yet'}</span>
      )}
    </Station>
  )
}

function Nodes() {
  const all = [...nodes.value.values()]
  const behind = all.filter(({ behindSince }) => behindSince !== undefined).length
  const away = all.filter(({ watchers }) => watchers === 0).length
  return (
    <li class="station">
      <span class="eyebrow">nodes</span>
      <a class="station-title" href="#/nodes">
        <b>{counted(all.length, 'node')}</b>
      </a>
      <div class="station-facts soft">
        <span>{counted(status.value?.core?.watchers.local ?? 0, 'watcher')}</span>
        {behind > 0 ? (
          <b class="state-partly">{counted(behind, 'node')} behind</b>
        ) : away > 0 ? (
          <b class="state-unknown">{counted(away, 'node')} not connected</b>
        ) : (
          <span>{all.length === 0 ? 'none yet' : 'all up to date'}</span>
        )}
      </div>
    </li>
  )
}

function Total() {
  void syncCount.value
  const from = agentClock.value - 60_000
  const recent = allSyncs().filter(({ at, error }) => error === undefined && Date.parse(at) >= from)
  const middle = median(recent.map(totalMs))
  const last = allSyncs().at(-1)
  return (
    <li class="total">
      <span class="eyebrow">event to data plane</span>
      <b class="big num">
        {middle === undefined ? '–' : milliseconds(middle).replace(/ m?s$/, '')}
        <small> {middle === undefined ? '' : milliseconds(middle).endsWith('ms') ? 'ms' : 's'}</small>
      </b>
      <div class="soft">
        <span>median of a minute</span>
        <span>last {last ? milliseconds(totalMs(last)) : '–'}</span>
      </div>
    </li>
  )
}
