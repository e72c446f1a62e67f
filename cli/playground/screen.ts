import type { Answer } from './caller.js'
import { addressText, demoName, type EndpointView, type ServiceView } from './demo-service.js'

// The live screen as text: a function of what is known, the size of the terminal, and whether it has colours.

export interface Hint {
  /** Can be pasted into a shell as it is. */
  readonly command: string
  readonly effect: string
}

export interface ScreenState {
  /** `userspace proxy on loopback` */
  readonly dataPlane: string
  /** Where the live page is, if it is served. */
  readonly page?: string | undefined
  readonly service: ServiceView | undefined
  readonly answer: Answer | undefined
  /** How often each pod answered. */
  readonly answers: ReadonlyMap<string, number>
  /** The last change that the data plane has taken over. */
  readonly change: LastChange | undefined
  readonly hints: readonly Hint[]
  readonly logPath: string
  /** The last warning or error of the log. */
  readonly warning: string | undefined
}

export interface LastChange {
  readonly what: string
  /** Time of day, `11:20:24`. */
  readonly at: string
  /** From the API server's change to the data plane's. Missing if the data plane had nothing to do, and for the first one. */
  readonly latencyMs?: number
}

type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan'
type Part = string | readonly [text: string, style: Style]
type Line = readonly Part[]

const codes: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 }

const stateStyle: Readonly<Record<EndpointView['state'], Style>> = {
  ready: 'green',
  'not ready': 'yellow',
  draining: 'yellow',
  ending: 'red',
}

export const milliseconds = (ms: number): string => (ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`)

/** At most `rows` lines of at most `columns` characters, without a line feed at the end. */
export function render(state: ScreenState, columns: number, rows: number, colours = false): string {
  const top = [titleLine(state), ...summaryLines(state)]
  const bottom = footerLines(state)
  // For endpoints and hints, with an empty line before, between and after them.
  const room = Math.max(0, rows - top.length - bottom.length - 3)
  const hints = hintLines(state.hints, columns)
  // Who answers matters more than what could be tried next.
  const endpoints = endpointLines(state, Math.max(room - hints.length, Math.ceil(room * 0.7)))
  const left = room - endpoints.length
  const lines = [...top, [], ...endpoints, ...(left > 1 ? [[], ...hints.slice(0, left)] : []), [], ...bottom]
  return lines
    .slice(0, rows)
    .map((line) => fit(line, columns, colours))
    .join('\n')
}

const titleLine = ({ dataPlane }: ScreenState): Line => [['kpng playground', 'bold'], ` · ${dataPlane}`]

const label = (text: string): Part => [text.padEnd(13), 'dim']

function summaryLines({ service, answer, change, page }: ScreenState): Line[] {
  return [
    ...(page === undefined ? [] : [[label('Live page'), [page, 'cyan']] as const]),
    [label('Service'), ...serviceParts(service)],
    [label('Answers now'), ...answerParts(service, answer)],
    [label('Last change'), ...changeParts(change)],
  ]
}

function serviceParts(service: ServiceView | undefined): Part[] {
  if (!service) return [['there is none', 'yellow'], `: kubectl expose deployment ${demoName} --port 8080`]
  const { type, target, problem = '', nodePort } = service
  const name = `default/${demoName}, ${type}, `
  if (!target) return [name, [problem, 'yellow']]
  return [name, [`http://${addressText(service)}`, 'cyan'], nodePort === undefined ? '' : `, node port ${nodePort}`]
}

function answerParts(service: ServiceView | undefined, answer: Answer | undefined): Part[] {
  if (!service?.target) return [['nobody is called', 'dim']]
  if (!answer) return [['…', 'dim']]
  if ('problem' in answer) return [[`nobody: ${answer.problem}`, 'red']]
  return [[answer.pod, 'green'], ` in ${milliseconds(answer.ms)}`]
}

function changeParts(change: LastChange | undefined): Part[] {
  if (!change) return [['none yet', 'dim']]
  return [`${change.at} `, [changeText(change), 'bold']]
}

export const changeText = ({ what, latencyMs }: LastChange): string =>
  latencyMs === undefined ? what : `in the data plane after ${milliseconds(latencyMs)}: ${what}`

function endpointLines({ service, answers }: ScreenState, room: number): Line[] {
  const endpoints = service?.endpoints ?? []
  if (endpoints.length === 0) return [[['No endpoints', 'yellow']]]
  const width = (of: (endpoint: EndpointView) => string, title: string) =>
    Math.max(title.length, ...endpoints.map((endpoint) => of(endpoint).length)) + 2
  const podWidth = width(({ pod }) => pod, 'ENDPOINT')
  const addressWidth = width(({ address }) => address, 'ADDRESS')
  const header: Line = [
    [`${'ENDPOINT'.padEnd(podWidth)}${'ADDRESS'.padEnd(addressWidth)}${'STATE'.padEnd(11)}ANSWERS`, 'dim'],
  ]
  const fitting = endpoints.length + 1 <= room ? endpoints : endpoints.slice(0, Math.max(0, room - 2))
  const most = Math.max(1, ...endpoints.map(({ pod }) => answers.get(pod) ?? 0))
  const lines = fitting.map(({ pod, address, state }): Line => {
    const count = answers.get(pod) ?? 0
    const bar = '█'.repeat(Math.ceil((count / most) * 12))
    return [
      pod.padEnd(podWidth) + address.padEnd(addressWidth),
      [state.padEnd(11), stateStyle[state]],
      [bar, 'green'],
      `${bar === '' ? '' : ' '}${count}`,
    ]
  })
  const left = endpoints.length - fitting.length
  return [header, ...lines, ...(left > 0 ? [[[`… and ${left} more`, 'dim'] as const]] : [])]
}

/** What a command does is left out where it does not fit; a command that is cut off is of no use. */
function hintLines(hints: readonly Hint[], columns: number): Line[] {
  const width = Math.max(0, ...hints.map(({ command }) => command.length).filter((length) => length <= 45)) + 3
  const lines = hints.map(({ command, effect }): Line => {
    const padded = `${command}   `.padEnd(width)
    const fits = effect !== '' && 2 + padded.length + effect.length <= columns
    return ['  ', [fits ? padded : command, 'cyan'], ...(fits ? [[effect, 'dim'] as const] : [])]
  })
  return [[['In another terminal:', 'bold']], ...lines]
}

function footerLines({ logPath, warning }: ScreenState): Line[] {
  const footer: Line = [['Ctrl-C ends it.', 'dim'], ` Log: ${logPath}`]
  return warning === undefined ? [footer] : [[[warning, 'yellow']], footer]
}

/** Cuts a line to the width, then adds the colours, which take no room. Control characters would move the cursor. */
function fit(line: Line, columns: number, colours: boolean): string {
  let room = columns
  let text = ''
  for (const part of line) {
    const [raw, style] = typeof part === 'string' ? [part, undefined] : part
    const characters = [...raw.replace(/\p{Cc}/gu, ' ')]
    const isCut = characters.length > room
    const shown = isCut ? `${characters.slice(0, Math.max(0, room - 1)).join('')}…` : characters.join('')
    if (room > 0 && shown !== '') text += colours && style ? `\x1b[${codes[style]}m${shown}\x1b[0m` : shown
    room -= characters.length
    if (isCut) break
  }
  return text
}
