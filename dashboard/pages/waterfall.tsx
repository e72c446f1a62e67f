import type { LiveSync } from '@kpng/api'
import { count, milliseconds, preciseTime } from '../format.js'
import { changeText, mainService, otherServices, type Span, spansOf, spanTexts, totalMs } from '../model/spans.js'
import { SpanRect } from '../parts/bars.js'
import { ServiceName } from '../parts/name.js'
import { serviceHref } from '../route.js'

/** Where the time of one sync went: its spans, and the steps of the backend. */
export function Waterfall({ sync }: { readonly sync: LiveSync }) {
  const spans = spansOf(sync)
  const steps = sync.times?.steps ?? []
  const start = Math.min(...spans.map(({ from }) => from))
  const end = Math.max(sync.durationMs, ...steps.map(({ to }) => to))
  const scale = { start, scale: 100 / Math.max(end - start, 0.001) }
  return (
    <section class="panel waterfall" aria-label="Where the time went">
      <header class="bar">
        <h2>Sync {count(sync.number)}</h2>
        <span class="soft small push num">{preciseTime(Date.parse(sync.at))}</span>
      </header>
      <What sync={sync} />
      {sync.error !== undefined && (
        <p class="error-text">
          <b>The sync failed and is tried again.</b> {sync.error}
        </p>
      )}
      <ol class="spans">
        {spans.map((span) => (
          <li key={span.name}>
            <Line span={span} {...scale} failed={sync.error !== undefined} />
            <span class="soft span-text">{spanTexts[span.name]}</span>
            {span.name === 'sync' && steps.length > 0 && (
              <ol class="span-steps">
                {steps.map(({ name, from, to }) => (
                  <li key={name}>
                    <Line span={{ name: 'sync', from, to }} label={name} {...scale} failed={sync.error !== undefined} />
                  </li>
                ))}
              </ol>
            )}
          </li>
        ))}
        <li class="span-total">
          <span>in all</span>
          <span />
          <b class="num">{milliseconds(totalMs(sync))}</b>
          <span class="soft span-text">
            {sync.times?.received === undefined ? 'as far as it is known' : 'from the event to the end of the sync'}
          </span>
        </li>
      </ol>
      <dl class="facts">
        <div>
          <dt>kind</dt>
          <dd>{sync.full ? 'everything was compared' : 'only what changed'}</dd>
        </div>
        {sync.latencyMs !== undefined && (
          <div>
            <dt>since the change in the cluster</dt>
            <dd class="num">{milliseconds(sync.latencyMs)}</dd>
          </div>
        )}
      </dl>
    </section>
  )
}

function What({ sync }: { readonly sync: LiveSync }) {
  const service = mainService(sync)
  const others = otherServices(sync)
  return (
    <p class="what">
      {service !== undefined && (
        <>
          <a href={serviceHref(service)}>
            <ServiceName of={service} />
          </a>
          {others > 0 && <span class="soft"> and {count(others)} more</span>}
          <br />
        </>
      )}
      {changeText(sync)}
    </p>
  )
}

interface LineProps {
  readonly span: Span
  readonly label?: string
  readonly start: number
  readonly scale: number
  readonly failed: boolean
}

function Line({ span, label = span.name, start, scale, failed }: LineProps) {
  return (
    <>
      <span class="span-name">{label}</span>
      <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
        <rect width="100" height="10" class="span-bed" />
        <SpanRect span={span} start={start} scale={scale} height={10} failed={failed} />
      </svg>
      <b class="num">{milliseconds(span.to - span.from)}</b>
    </>
  )
}
