import type { Explanation, KubernetesService, LiveService } from '@kpng/api'
import { allSyncs, rowOf, shape, status, syncCount, version } from '../data/cluster.js'
import { agentClock } from '../data/connection.js'
import { Glyph } from '../draw/glyph.js'
import { ago, milliseconds, timeOfDay } from '../format.js'
import { changeText, totalMs } from '../model/spans.js'
import { stateTexts } from '../model/states.js'
import { SpanBars } from '../parts/bars.js'
import { changeHref } from '../route.js'
import { HeldPanel } from './held.js'
import { Findings, PathPanel, useExplanation } from './path-panel.js'

const mostChanges = 8

/** Who gets which endpoint, and why not the others? */
export function ServicePage({ name }: { readonly name: string }) {
  void version.value
  void shape.value
  const explained = useExplanation(name)
  const service = rowOf(name)?.service
  const [namespace, short] = name.split('/')
  return (
    <main class="page">
      <div class="title">
        <a class="back" href="#/">
          <span aria-hidden="true">←</span>
          <span class="sr">Back to all Services</span>
        </a>
        <h1>
          {short} <span class="soft">{namespace}</span>
        </h1>
        {service && (
          <>
            <span class="badge">
              <Glyph state={service.verdict} /> {stateTexts[service.verdict].label}
            </span>
            <span class="headline">{service.headline}</span>
          </>
        )}
      </div>
      <Findings whole={explained.whole} />
      <PathPanel name={name} explained={explained} />
      <div class="three">
        {service && <Facts service={service} objects={objectsOf(explained.whole)} />}
        {explained.answer && explained.answer.frontends.length > 0 && (
          <HeldPanel frontends={explained.answer.frontends} readAt={explained.answeredAt} />
        )}
        <RecentChanges name={name} />
      </div>
    </main>
  )
}

/** Where there are few Services, the first one is shown at once. */
export function Featured({ name }: { readonly name: string }) {
  const explained = useExplanation(name)
  return (
    <>
      {explained.whole?.diagnosis.findings.length !== 0 && <Findings whole={explained.whole} of={name} />}
      <PathPanel name={name} explained={explained} title={name.split('/')[1] ?? name} />
    </>
  )
}

/** Undefined: nobody could read them. */
function objectsOf(whole: Explanation | undefined): KubernetesService | undefined {
  const kubernetes = whole?.service?.kubernetes
  return kubernetes && 'value' in kubernetes ? kubernetes.value.service : undefined
}

const selectorText = ({ selector }: KubernetesService): string =>
  Object.entries(selector)
    .map(([key, value]) => `${key}=${value}`)
    .join(', ')

const targetsText = ({ ports }: KubernetesService): string =>
  ports.map(({ port, targetPort }) => `${port} → ${targetPort}`).join(', ')

interface FactsProps {
  readonly service: LiveService
  readonly objects: KubernetesService | undefined
}

function Facts({ service, objects }: FactsProps) {
  const isOpen = service.type !== 'ClusterIP' || service.externalIps.length > 0
  const facts: readonly (readonly [string, string])[] = [
    ['type', service.clusterIps.length === 0 ? `${service.type}, headless` : service.type],
    ['cluster IP', service.clusterIps.join(', ')],
    ['other IPs', service.externalIps.join(', ')],
    ['ports', service.ports.join(', ')],
    ['target ports', objects ? targetsText(objects) : ''],
    ['selector', objects ? selectorText(objects) || 'none' : ''],
    ['internal policy', service.internalTrafficPolicy],
    ['external policy', isOpen ? service.externalTrafficPolicy : ''],
    ['session affinity', service.sessionAffinity ? 'ClientIP' : 'none'],
    ['topology hints', service.hints ? 'followed' : ''],
    ['source ranges', service.sourceRanges ? 'some' : ''],
    ['last change', service.changedAt ? ago(agentClock.value - Date.parse(service.changedAt)) : 'none since the start'],
  ]
  return (
    <section class="panel" aria-label="As it was asked for">
      <header class="bar">
        <h2>As it was asked for</h2>
      </header>
      <dl class="facts">
        {facts
          .filter(([, value]) => value !== '')
          .map(([term, value]) => (
            <div key={term}>
              <dt>{term}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
    </section>
  )
}

function RecentChanges({ name }: { readonly name: string }) {
  void syncCount.value
  const syncs = allSyncs()
    .filter(({ services }) => services.some(({ service }) => service === name))
    .slice(-mostChanges)
    .reverse()
  if (status.value?.role === 'core') return null
  return (
    <section class="panel" aria-label="Recent changes">
      <header class="bar">
        <h2>Recent changes</h2>
      </header>
      {syncs.length === 0 ? (
        <p class="soft">None among the last {allSyncs().length} syncs.</p>
      ) : (
        <ul class="history">
          {syncs.map((sync) => (
            <li key={sync.number}>
              <a href={changeHref(sync.number)}>
                <span class="soft num">{timeOfDay(Date.parse(sync.at))}</span>
                <span class={sync.error === undefined ? '' : 'state-refused'}>{changeText(sync, name)}</span>
                <SpanBars sync={sync} />
                <span class="num">{milliseconds(totalMs(sync))}</span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
