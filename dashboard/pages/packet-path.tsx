import type { ClientKind, Explanation, FrontendAnswer, LiveService, RouteAnswer } from '@kpng/api'
import { useRef, useState } from 'preact/hooks'
import { addressOf } from '../model/frontends.js'
import { isLocalOnly, type PathEndpoint, stepsOf, type Zone, zonesOf } from '../model/path.js'
import { Wires } from './wires.js'

// The picture of a path: who asks → which address → how it is decided → who answers.

const askers: readonly (readonly [ClientKind, string, string])[] = [
  ['pod', 'a pod here', 'on this node'],
  ['node', 'this node', 'its own processes'],
  ['outside', 'outside', 'another machine'],
]

/** More endpoints than this are shown on request. */
const mostEndpoints = 30

export interface PacketPathProps {
  readonly explanation: Explanation
  readonly service: LiveService | undefined
  readonly from: ClientKind
  readonly onFrom: (from: ClientKind) => void
  /** The addresses to choose from. */
  readonly frontends: readonly FrontendAnswer[]
  readonly frontend: FrontendAnswer
  readonly onFrontend: (id: string) => void
  readonly route: RouteAnswer
}

export function PacketPath(props: PacketPathProps) {
  const { explanation, service, from, onFrom, frontends, frontend, onFrontend, route } = props
  const box = useRef<HTMLDivElement>(null)
  const [isOpen, setOpen] = useState(false)
  return (
    <div class={`path outcome-${route.outcome}`} ref={box}>
      <Wires within={box} subject={`${JSON.stringify(route)} ${frontend.id} ${isOpen} ${frontends.length}`} />
      <fieldset class="who">
        <legend class="eyebrow">who asks</legend>
        {askers.map(([kind, name, text]) => (
          <label key={kind} class={kind === from ? 'pick on' : 'pick'}>
            <input type="radio" name="from" checked={kind === from} onChange={() => onFrom(kind)} />
            <b>{name}</b>
            <span class="soft">{text}</span>
          </label>
        ))}
      </fieldset>
      <fieldset class="where">
        <legend class="eyebrow">for which address</legend>
        {frontends.map((each) => (
          <label key={each.id} class={each.id === frontend.id ? 'pick on' : 'pick'}>
            <input type="radio" name="to" checked={each.id === frontend.id} onChange={() => onFrontend(each.id)} />
            <b class="mono">{addressOf(each).text}</b>
            <span class="soft">{each.kind}</span>
          </label>
        ))}
      </fieldset>
      <section class="how" aria-label="How it is decided">
        <h3 class="eyebrow">how it is decided</h3>
        <ol>
          {stepsOf(frontend, route, service).map(({ title, text, isLast, isStop }) => (
            <li key={title + text} class={`${isLast ? 'last' : ''} ${isStop ? 'stop' : ''}`}>
              <b>{title}</b>
              {text && <span>{text}</span>}
            </li>
          ))}
        </ol>
      </section>
      <Answers
        zones={zonesOf(explanation, frontend, route, service !== undefined && isLocalOnly(frontend, route, service))}
        used={route.endpoints.length}
        isOpen={isOpen}
        onOpen={setOpen}
      />
    </div>
  )
}

interface AnswersProps {
  readonly zones: readonly Zone[]
  /** How many endpoints share the connections. */
  readonly used: number
  readonly isOpen: boolean
  readonly onOpen: (isOpen: boolean) => void
}

function Answers({ zones, used, isOpen, onOpen }: AnswersProps) {
  const all = zones.reduce((sum, { endpoints }) => sum + endpoints.length, 0)
  let room = isOpen ? all : mostEndpoints
  return (
    <section class="answers" aria-label="Endpoints">
      <h3 class="eyebrow">who answers</h3>
      {all === 0 && <p class="soft">The Service has no endpoints.</p>}
      {zones.map(({ name, isHere, endpoints, usedCount }) => {
        const shown = endpoints.slice(0, room)
        room -= shown.length
        return (
          shown.length > 0 && (
            <div class="zone" key={name}>
              <h4>
                {name || 'no zone'} {isHere && <span class="here">this zone</span>}{' '}
                <span class="soft">
                  {usedCount} of {endpoints.length}
                </span>
              </h4>
              <ul>
                {shown.map((endpoint) => (
                  <Endpoint
                    key={`${endpoint.address} ${endpoint.reason} ${endpoint.pod}`}
                    endpoint={endpoint}
                    used={used}
                  />
                ))}
              </ul>
            </div>
          )
        )
      })}
      {all > mostEndpoints && (
        <button type="button" class="plain" onClick={() => onOpen(!isOpen)}>
          {isOpen ? 'Show fewer' : `Show ${all - mostEndpoints} more`}
        </button>
      )}
    </section>
  )
}

function Endpoint({ endpoint, used }: { readonly endpoint: PathEndpoint; readonly used: number }) {
  const { address, pod, node, isLocal, isUsed, reason, flows } = endpoint
  return (
    <li class={isUsed ? 'endpoint used' : 'endpoint'}>
      <i class={isUsed ? 'dot' : 'dot off'} aria-hidden="true" />
      <span class="mono">{address}</span>
      <span class="soft endpoint-node" title={pod}>
        {isLocal ? <b class="here">here</b> : node} {pod}
      </span>
      <span class="soft small num">{flows ? `${flows} open` : ''}</span>
      {isUsed ? (
        <span class="share num">{used === 1 ? 'every connection' : `1 in ${used}`}</span>
      ) : (
        <span class="reason">{reason}</span>
      )}
    </li>
  )
}
