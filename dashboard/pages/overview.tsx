import type { LiveSample, Verdict } from '@kpng/api'
import { allRows, samples, shape, stateCounts, status } from '../data/cluster.js'
import { shownRows, shownStates, toggleState } from '../data/shown.js'
import { Chart, type ChartLine } from '../draw/chart.js'
import { Glyph } from '../draw/glyph.js'
import { ServiceMap } from '../draw/service-map.js'
import { useSize } from '../draw/size.js'
import { bytes, count, milliseconds } from '../format.js'
import { stateTexts, worstFirst } from '../model/states.js'
import { Hints } from './hints.js'
import { Pipeline } from './pipeline.js'
import { Featured } from './service.js'
import { ServiceList, serviceRowHeight } from './service-list.js'

/** Fewer Services than this are better read than looked at. */
const mapFrom = 40
/** Fewer than this fill less than half of the page. */
const smallMap = 500
const mostRowsWithoutMap = 8
/** Room for the sentence that nothing matches. */
const rowsWithoutMatch = 6
const listFrame = 58

/** Is this node right, and if not, where? */
export function Overview() {
  void shape.value
  return (
    <main class="overview">
      <Pipeline />
      <Counts />
      {allRows().length < mapFrom ? <FewServices /> : <ManyServices />}
      <Charts />
    </main>
  )
}

function ManyServices() {
  return (
    <>
      <div class={allRows().length < smallMap ? 'split small-map' : 'split'}>
        <MapPanel />
        <ServiceList />
      </div>
      <Hints />
    </>
  )
}

/** The Service of the API server itself is not what anybody looks for. */
const apiService = 'default/kubernetes'

/** The first Service is explained at once. */
function FewServices() {
  const first = shownRows.value.find(({ key }) => key !== apiService) ?? shownRows.value[0]
  const rows = Math.min(mostRowsWithoutMap, shownRows.value.length || rowsWithoutMatch)
  return (
    <>
      <div class="split few" style={{ height: `${rows * serviceRowHeight + listFrame}px` }}>
        <ServiceList />
      </div>
      <Hints />
      {first && <Featured key={first.key} name={first.key} />}
    </>
  )
}

/** Chips that are there also if no Service is so. */
const always: readonly Verdict[] = ['differs', 'refused', 'partly', 'draining', 'dropped', 'serving']

function Counts() {
  const counts = stateCounts.value
  const all = allRows().length
  const served = worstFirst.reduce((sum, state) => (stateTexts[state].isServed ? sum + counts[state] : sum), 0)
  const shown = worstFirst.filter((verdict) => counts[verdict] > 0 || always.includes(verdict))
  return (
    <div class="verdict">
      <h1>
        {served === all ? (
          all === 1 ? (
            'The only Service is served.'
          ) : (
            `All ${count(all)} Services are served.`
          )
        ) : (
          <>
            <b class="num">{count(served)}</b> of {count(all)} Services {served === 1 ? 'is' : 'are'} served.
          </>
        )}
      </h1>
      <fieldset class="chips">
        <legend class="sr">Show only</legend>
        {shown.map((state) => (
          <button
            key={state}
            type="button"
            class={counts[state] === 0 ? 'chip none' : 'chip'}
            aria-pressed={shownStates.value.has(state)}
            title={stateTexts[state].meaning}
            onClick={() => toggleState(state)}
          >
            <Glyph state={state} />
            <b class="num">{count(counts[state])}</b> {stateTexts[state].label}
          </button>
        ))}
      </fieldset>
    </div>
  )
}

function MapPanel() {
  const [box, { width, height }] = useSize<HTMLDivElement>()
  return (
    <section class="panel map-panel" aria-label="Map of all Services">
      <div ref={box} class="map-room">
        <ServiceMap width={width} height={Math.max(260, height)} />
      </div>
    </section>
  )
}

const perSecond = (value: number) => `${count(value)} per second`

const changes: ChartLine = { name: 'changed Services', value: (sample) => sample.changes, text: perSecond }
const latency: ChartLine = { name: 'slowest', value: (sample) => sample.latencyMs, text: milliseconds }
const connections: ChartLine = { name: 'open', value: (sample) => sample.connections, text: count }
const processor: ChartLine = {
  name: 'processor',
  value: ({ cpuMs }) => cpuMs / 10,
  text: (percent) => `${percent < 10 ? percent.toFixed(1) : Math.round(percent)} %`,
}
const memory: ChartLine = { name: 'memory', value: (sample) => sample.memory, text: bytes }

function Charts() {
  const hasConnections = samples.value.some((sample: LiveSample) => sample.connections !== undefined)
  if (samples.value.length === 0) return null
  return (
    <div class={hasConnections ? 'charts four' : 'charts'}>
      <Chart title="Changes" line={changes} hasArea />
      {status.value?.role !== 'core' && <Chart title="Change to data plane" line={latency} />}
      {hasConnections && <Chart title="Connections" line={connections} hasArea />}
      <Chart title="This kpng" line={processor} also={memory} hasArea />
    </div>
  )
}
