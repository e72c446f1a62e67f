import type { ConnectionsAnswer, LiveConnection } from '@kpng/api'
import { useRef, useState } from 'preact/hooks'
import { useAnswer } from '../data/ask.js'
import { agentClock } from '../data/connection.js'
import { Meter } from '../draw/glyph.js'
import { bytes, count, counted, shortDuration } from '../format.js'
import { ServiceName } from '../parts/name.js'
import { VirtualList } from '../parts/virtual-list.js'
import { serviceHref } from '../route.js'

type Order = 'bytes' | 'oldest' | 'newest'

const bytesOf = ({ bytesFromClient, bytesToClient }: LiveConnection) => bytesFromClient + bytesToClient
const orders: Readonly<Record<Order, (a: LiveConnection, b: LiveConnection) => number>> = {
  bytes: (a, b) => bytesOf(b) - bytesOf(a),
  oldest: (a, b) => (a.since < b.since ? -1 : 1),
  newest: (a, b) => (a.since > b.since ? -1 : 1),
}
const keyOf = ({ client, frontend, protocol }: LiveConnection) => `${protocol} ${client} ${frontend}`

/** What the data plane carries now. */
export function ConnectionsPage() {
  const { answer, error } = useAnswer<ConnectionsAnswer>('v1/connections', {}, { revision: '', everyMs: 1000 })
  if (error) return <Sentence title="Connections cannot be shown." text={error.message} />
  if (!answer) {
    return (
      <main class="page">
        <h1 class="sr">Connections</h1>
        <p class="nothing tall soft" role="status">
          Asking for connections …
        </p>
      </main>
    )
  }
  if (answer.connections) return <Open total={answer.total} connections={answer.connections} />
  if (answer.counters) return <Counters counters={answer.counters} why={answer.why} />
  return <Sentence title="This data plane lists no connections." text={answer.why ?? ''} />
}

function Sentence({ title, text }: { readonly title: string; readonly text: string }) {
  return (
    <main class="page">
      <div class="nothing tall">
        <h1>{title}</h1>
        <p class="soft">{text}</p>
        <a class="plain" href="#/">
          All Services
        </a>
      </div>
    </main>
  )
}

function Open({ total, connections }: { readonly total: number; readonly connections: readonly LiveConnection[] }) {
  const [order, setOrder] = useState<Order>('bytes')
  const isHeld = useRef(false)
  const places = useRef(new Map<string, number>())
  const placeOf = (each: LiveConnection) => places.current.get(keyOf(each)) ?? Number.MAX_SAFE_INTEGER
  const list = connections.toSorted(isHeld.current ? (a, b) => placeOf(a) - placeOf(b) : orders[order])
  if (!isHeld.current) places.current = new Map(list.map((each, index) => [keyOf(each), index]))
  const most = list.reduce((highest, each) => Math.max(highest, bytesOf(each)), 1)
  return (
    <main class="page connections">
      <h1 class="sr">Connections</h1>
      <section class="panel list" aria-label="Connections">
        <header class="bar">
          <h2>{counted(total, 'open connection')}</h2>
          <span class="soft small">
            {total > list.length ? `the newest ${count(list.length)}, once a second` : 'once a second'}
          </span>
          <label class="sort small">
            <span class="soft">order</span>{' '}
            <select value={order} onChange={({ currentTarget }) => setOrder(currentTarget.value as Order)}>
              <option value="bytes">most bytes</option>
              <option value="oldest">oldest</option>
              <option value="newest">newest</option>
            </select>
          </label>
        </header>
        {list.length === 0 ? (
          <div class="nothing">
            <p>
              <b>Nobody is connected.</b>
            </p>
          </div>
        ) : (
          <VirtualList
            id="connections"
            label="Connections"
            items={list}
            rowHeight={40}
            row={(each) => <ConnectionRow connection={each} most={most} />}
            head={<Head />}
            onHold={(held) => {
              isHeld.current = held
            }}
          />
        )}
      </section>
    </main>
  )
}

const Head = () => (
  <div class="connection-row head small" role="presentation" aria-hidden="true">
    <span>client</span>
    <span>Service</span>
    <span>endpoint</span>
    <span class="right">open for</span>
    <span class="right">to endpoint</span>
    <span class="right">to client</span>
    <span />
  </div>
)

function ConnectionRow({ connection, most }: { readonly connection: LiveConnection; readonly most: number }) {
  const { client, service, frontend, endpoint, since, bytesFromClient, bytesToClient, protocol } = connection
  const port = frontend.slice(frontend.lastIndexOf(':'))
  return (
    <a class="connection-row" href={serviceHref(service)}>
      <span class="mono">{client}</span>
      <span>
        <ServiceName of={service} />{' '}
        <span class="soft num">
          {port}
          {protocol === 'UDP' ? '/udp' : ''}
        </span>
      </span>
      <span class="mono">{endpoint}</span>
      <span class="num right">{shortDuration(agentClock.value - Date.parse(since))}</span>
      <span class="num right">{bytes(bytesFromClient)}</span>
      <span class="num right">{bytes(bytesToClient)}</span>
      <Meter value={bytesFromClient + bytesToClient} of={most} />
    </a>
  )
}

type Counter = NonNullable<ConnectionsAnswer['counters']>[number]

/** The kernel carries the connections, and counts them by Service. */
function Counters({ counters, why }: { readonly counters: readonly Counter[]; readonly why: string | undefined }) {
  const list = counters.toSorted((a, b) => b.connections - a.connections)
  const most = list[0]?.connections ?? 1
  return (
    <main class="page connections">
      <h1 class="sr">Connections</h1>
      <section class="panel list" aria-label="Connections by Service">
        <header class="bar">
          <h2>Connections by Service</h2>
          <span class="soft">{why ?? 'since the rules were made'}</span>
        </header>
        <VirtualList
          id="connections"
          label="Connections by Service"
          items={list}
          rowHeight={40}
          row={({ service, connections, bytes: size }) => (
            <a class="counter-row" href={serviceHref(service)}>
              <span>
                <ServiceName of={service} />
              </span>
              <span class="num right">{counted(connections, 'connection')}</span>
              <span class="num right soft">{size === undefined ? '' : bytes(size)}</span>
              <Meter value={connections} of={most} />
            </a>
          )}
        />
      </section>
    </main>
  )
}
