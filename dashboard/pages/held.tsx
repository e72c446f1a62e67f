import type { FrontendAnswer, HeldAnswer } from '@kpng/api'
import { status } from '../data/cluster.js'
import { wallClock } from '../data/connection.js'
import { Glyph } from '../draw/glyph.js'
import { ago, count, counted } from '../format.js'

const mostClients = 20

/** What the data plane really holds, address by address, and where it differs from what it should hold. */
export function HeldPanel({
  frontends,
  readAt,
}: {
  readonly frontends: readonly FrontendAnswer[]
  readonly readAt: number
}) {
  const backend = status.value?.backend ?? 'data plane'
  const read = frontends.filter(({ held }) => held !== undefined)
  const wrong = read.filter(({ held }) => held && !held.isRight).length
  const holder = read[0]?.held?.holder
  if (read.length === 0) {
    return (
      <section class="panel held" aria-label="In the data plane">
        <header class="bar">
          <h2>In the data plane</h2>
        </header>
        <p class="soft">
          {status.value?.role === 'core'
            ? 'A core has no data plane. The kpng on the node knows what it holds.'
            : frontends.every(isOfOthers)
              ? 'Nothing of it should be there: this data plane does not serve it.'
              : `This ${backend} data plane cannot be read back. What you see is what it was told.`}
        </p>
      </section>
    )
  }
  return (
    <section class="panel held" aria-label="In the data plane">
      <header class="bar">
        <h2>In the data plane</h2>
        {wrong === 0 ? (
          <span class="soft">exactly what it should hold</span>
        ) : (
          <span class="state-differs">
            <Glyph state="differs" /> {wrong} of {read.length} {wrong === 1 ? 'differs' : 'differ'}
          </span>
        )}
        <span class="soft small push">read back {ago(wallClock.value - readAt)}</span>
      </header>
      <ul class="held-list">
        {read.map((frontend) => (
          <HeldRow key={frontend.id} frontend={frontend} held={frontend.held as HeldAnswer} />
        ))}
      </ul>
      <Affinity frontends={read} />
      <p class="soft small">
        Read back from {holder ?? backend}
        {backend === 'nftables' && holder === undefined && (
          <>
            , as <code>nft list ruleset</code> shows it
          </>
        )}
        .
      </p>
    </section>
  )
}

/** The data plane leaves packets to it alone, or gives them to another Service. */
const isOfOthers = ({ routes }: FrontendAnswer): boolean =>
  routes.every(({ outcome }) => outcome === 'passed' || outcome === 'elsewhere')

function HeldRow({
  frontend: { id, kind, routes },
  held,
}: {
  readonly frontend: FrontendAnswer
  readonly held: HeldAnswer
}) {
  const endpoints = routes[0]?.endpoints.length ?? 0
  return (
    <li class={held.isRight ? '' : 'differs'}>
      <span class="held-mark">
        {held.isRight ? (
          <>
            <span aria-hidden="true">✓</span>
            <span class="sr">as it should be: </span>
          </>
        ) : (
          <Glyph state="differs" named />
        )}
      </span>
      <span class="mono">{id}</span>
      <span class="soft">{kind}</span>
      <span class="num soft">
        {endpoints === 0 ? (routes[0]?.outcome ?? '') : counted(endpoints, 'endpoint')}
        {held.connections === undefined ? '' : `, ${count(held.connections)} connections`}
      </span>
      {held.differences.map((difference) => (
        <span key={difference} class="held-difference">
          {difference}
        </span>
      ))}
    </li>
  )
}

function Affinity({ frontends }: { readonly frontends: readonly FrontendAnswer[] }) {
  const clients = frontends.flatMap(({ held }) => held?.sessionAffinity ?? [])
  if (clients.length === 0) return null
  return (
    <details>
      <summary>{counted(clients.length, 'client')} remembered by session affinity</summary>
      <ul class="affinity mono">
        {clients.slice(0, mostClients).map(({ client, endpoint }) => (
          <li key={`${client} ${endpoint}`}>
            {client} → {endpoint}
          </li>
        ))}
      </ul>
    </details>
  )
}
