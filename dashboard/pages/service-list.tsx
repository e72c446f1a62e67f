import { allRows, shape, version } from '../data/cluster.js'
import { agentClock } from '../data/connection.js'
import { isFiltered, isHeld, order, query, showAll, shownRows } from '../data/shown.js'
import { Glyph, Meter } from '../draw/glyph.js'
import { count, counted, shortDuration } from '../format.js'
import { addressText, type Row, traits } from '../model/rows.js'
import { type Order, orderTexts, searchWords } from '../model/search.js'
import { VirtualList } from '../parts/virtual-list.js'
import { serviceHref } from '../route.js'

export const serviceRowHeight = 50

/** What the map shows, in words. */
export function ServiceList() {
  void version.value
  void shape.value
  const rows = shownRows.value
  return (
    <section class="panel list" aria-label="Services">
      <header class="bar">
        <h2>
          {isFiltered.value ? (
            <>
              {count(rows.length)} <span class="soft">of {count(allRows().length)}</span>
            </>
          ) : (
            counted(allRows().length, 'Service')
          )}
        </h2>
        <span class="soft small" aria-hidden="true">
          {isHeld.value ? 'order held' : ''}
        </span>
        <label class="sort small">
          <span class="soft">order</span>{' '}
          <select
            value={order.value}
            onChange={({ currentTarget }) => {
              order.value = currentTarget.value as Order
            }}
          >
            {Object.entries(orderTexts).map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
      </header>
      {rows.length > 0 ? (
        <VirtualList
          id="services"
          label="Services"
          items={rows}
          rowHeight={serviceRowHeight}
          row={(row) => <ServiceRow row={row} />}
          onHold={(held) => {
            isHeld.value = held
          }}
        />
      ) : (
        <NoMatch />
      )}
    </section>
  )
}

function ServiceRow({ row: { key, service } }: { readonly row: Row }) {
  const { namespace, name, verdict, reason, endpoints, total, changedAt } = service
  return (
    <a class="service-row" href={serviceHref(key)}>
      <Glyph state={verdict} named />
      <span class="row-name">
        <b>{name}</b> <span class="soft">{namespace}</span>
      </span>
      <span class="row-why">
        <span class="mono soft">{addressText(service)}</span>
        {reason ? (
          <span class={`state-${verdict}`}>{reason}</span>
        ) : (
          <span class="soft">{traits(service).join(', ')}</span>
        )}
      </span>
      <span class="row-used num">
        {endpoints} <span class="soft">{total === undefined ? 'used' : `of ${total}`}</span>
      </span>
      <span class="row-meter">
        <Meter value={endpoints} of={total ?? endpoints} state={verdict} />
      </span>
      <span class="row-age soft num">{changedAt ? shortDuration(agentClock.value - Date.parse(changedAt)) : ''}</span>
    </a>
  )
}

function NoMatch() {
  return (
    <div class="nothing">
      <p>
        <b>No Service matches.</b>
      </p>
      <p class="soft">
        Names, namespaces, <code>ip:port</code> and endpoint addresses are searched, and the words{' '}
        {searchWords.map((word) => (
          <button
            key={word}
            type="button"
            class="word"
            onClick={() => {
              showAll()
              query.value = word
            }}
          >
            {word}
          </button>
        ))}
        . <code>-word</code> leaves out.
      </p>
      <button type="button" class="plain" onClick={showAll}>
        Show all
      </button>
    </div>
  )
}
