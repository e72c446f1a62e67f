import type { ClientKind, Explanation, FrontendAnswer, LiveService } from '@kpng/api'
import { useRef, useState } from 'preact/hooks'
import { type Asked, useAnswer } from '../data/ask.js'
import { rowOf, status, version } from '../data/cluster.js'
import { explainCommand, familiesOf, frontendsFor, portsOf } from '../model/frontends.js'
import { Copy } from '../parts/copy.js'
import { nodeName, serviceHref } from '../route.js'
import { PacketPath } from './packet-path.js'

/** An explanation also reads the data plane back, so it is asked again from time to time. */
const explainEveryMs = 5000
/** What the objects in Kubernetes say is asked of the API server. */
const diagnoseEveryMs = 15_000

export interface Explained extends Asked<Explanation> {
  /** Who asks, as chosen. The answer may still be that to the question before. */
  readonly from: ClientKind
  readonly setFrom: (from: ClientKind) => void
  readonly service: LiveService | undefined
  /** The same for whoever asks: what was found about the Service, and what its objects say. */
  readonly whole: Explanation | undefined
}

/** What `kpng explain` says about a Service, kept up to date. */
export function useExplanation(key: string): Explained {
  void version.value
  const [from, setFrom] = useState<ClientKind>('pod')
  const service = rowOf(key)?.service
  const [namespace = ''] = key.split('/')
  const revision = `${service?.changedBy} ${service?.verdict} ${service?.headline} ${service?.endpoints}`
  const query = { what: key, namespace, from }
  const asked = useAnswer<Explanation>('v1/explain', query, { revision, everyMs: explainEveryMs })
  const whole = useAnswer<Explanation>('v1/explain', { what: key, namespace }, { revision, everyMs: diagnoseEveryMs })
  // Until the next answer is there, the one before stays: the picture would flicker.
  const before = useRef<Asked<Explanation>>(asked)
  if (asked.answer || asked.error) before.current = asked
  return { ...before.current, from, setFrom, service, whole: whole.answer }
}

/** The path of a packet, and what to choose in it. */
export function PathPanel({
  name,
  explained,
  title,
}: {
  readonly name: string
  readonly explained: Explained
  readonly title?: string
}) {
  const { answer, error, service, from, setFrom } = explained
  const [family, setFamily] = useState('')
  const [portName, setPortName] = useState('')
  const [chosen, setChosen] = useState('')
  if (!answer) return <Unexplained name={name} error={error} />
  const families = familiesOf(answer.frontends)
  const ports = portsOf(answer.frontends)
  const ofFamily = families.find((each) => each === family) ?? families[0]
  const ofPort = ports.find((each) => each.name === portName) ?? ports[0]
  const frontends = ofFamily && ofPort ? frontendsFor(answer.frontends, ofFamily, ofPort.name) : []
  const frontend = frontends.find(({ id }) => id === chosen) ?? frontends[0]
  const route = frontend?.routes[0]
  return (
    <section class="panel path-panel" aria-label="The path of a packet">
      {title === undefined ? (
        <h2 class="sr">The path of a packet</h2>
      ) : (
        <header class="bar">
          <h2>
            <a href={serviceHref(name)}>{title}</a>
          </h2>
          <span class="soft">how a packet finds its endpoint</span>
        </header>
      )}
      <Sentence answer={answer} frontend={frontend} />
      {frontend && route && (
        <>
          <div class="switches">
            <Switch label="Address family" options={families} value={ofFamily ?? ''} onChange={setFamily} />
            <Switch
              label="Port"
              options={ports.map((port) => port.name)}
              texts={ports.map((port) => port.label)}
              value={ofPort?.name ?? ''}
              onChange={setPortName}
            />
          </div>
          <PacketPath
            explanation={answer}
            onFrom={setFrom}
            onFrontend={setChosen}
            {...{ service, from, frontends, frontend, route }}
          />
        </>
      )}
      <footer>{frontend && <Copy text={explainCommand(frontend, from, nodeName, status.value?.hints)} />}</footer>
    </section>
  )
}

function Unexplained({ name, error }: { readonly name: string; readonly error: Error | undefined }) {
  return (
    <section class="panel path-panel" aria-label="The path of a packet">
      {error ? (
        <p role="alert">
          <b class="state-refused">The agent cannot explain {name}.</b> {error.message}
        </p>
      ) : (
        <p class="soft" role="status">
          Asking about {name} …
        </p>
      )}
    </section>
  )
}

function Sentence({
  answer,
  frontend,
}: {
  readonly answer: Explanation
  readonly frontend: FrontendAnswer | undefined
}) {
  const route = frontend?.routes[0]
  const differs = frontend?.held !== undefined && !frontend.held.isRight
  return (
    <p class={`sentence outcome-${differs ? 'differs' : (route?.outcome ?? 'refused')}`} aria-live="polite">
      {route?.sentence ?? answer.diagnosis.headline}
      {differs && <span class="state-differs"> {frontend.held?.differences.join(' ')}</span>}
    </p>
  )
}

/** What was found, with what repairs it, and what nobody could say. */
export function Findings({ whole, of }: { readonly whole: Explanation | undefined; readonly of?: string }) {
  const { findings = [], unknown = [] } = whole?.diagnosis ?? {}
  if (findings.length + unknown.length === 0) return null
  return (
    <section class={findings.length === 0 ? 'findings' : 'panel findings'} aria-label="What was found">
      {of !== undefined && (
        <header class="bar">
          <h2>
            <a href={serviceHref(of)}>{of.split('/')[1] ?? of}</a>
          </h2>
          <span class="soft">what was found</span>
        </header>
      )}
      <ul>
        {findings.map(({ code, level, what, why, todo, command }) => (
          <li key={code + what} class={level}>
            <p>
              <b>{what}</b> <span class="soft num">{code}</span>
            </p>
            <p class="soft">
              {why} {todo}
            </p>
            {command !== undefined && <Copy text={command} />}
          </li>
        ))}
      </ul>
      {unknown.length > 0 && (
        <details class="soft small">
          <summary>What nobody could say</summary>
          {unknown.map((text) => (
            <p key={text}>{text}</p>
          ))}
        </details>
      )}
    </section>
  )
}

interface SwitchProps {
  readonly label: string
  readonly options: readonly string[]
  readonly texts?: readonly string[]
  readonly value: string
  readonly onChange: (value: string) => void
}

/** Nothing to choose, nothing to show. */
function Switch({ label, options, texts = options, value, onChange }: SwitchProps) {
  if (options.length < 2) return null
  return (
    <fieldset class="switch">
      <legend class="sr">{label}</legend>
      {options.map((option, index) => (
        <label key={option} class={option === value ? 'on' : ''}>
          <input type="radio" name={label} checked={option === value} onChange={() => onChange(option)} />
          {texts[index]}
        </label>
      ))}
    </fieldset>
  )
}
