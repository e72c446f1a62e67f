import { describe, expect, test } from 'vitest'
import { render, type ScreenState } from './screen.js'

const endpoint = (pod: string, host: number, state: 'ready' | 'not ready' | 'draining' | 'ending' = 'ready') => ({
  pod,
  address: `127.10.0.${host}:8080`,
  state,
})

const state: ScreenState = {
  dataPlane: "kpng's userspace proxy on loopback",
  service: {
    type: 'ClusterIP',
    target: { host: '127.96.1.1', port: 8080 },
    endpoints: [
      endpoint('web-1-aaaaa', 2),
      endpoint('web-1-bbbbb', 3, 'not ready'),
      endpoint('web-1-ccccc', 4, 'draining'),
    ],
  },
  answer: { pod: 'web-1-aaaaa', ms: 1.93 },
  answers: new Map([
    ['web-1-aaaaa', 24],
    ['web-1-ccccc', 2],
  ]),
  change: { what: 'web-1-bbbbb not ready', at: '11:20:24', latencyMs: 4.21 },
  hints: [
    { command: 'export KUBECONFIG=/tmp/kpng-playground-7-x/kubeconfig', effect: '' },
    { command: 'kubectl scale deployment web --replicas 5', effect: 'other pods answer' },
    { command: 'kubectl delete pod web-1-aaaaa', effect: 'it drains, another takes over' },
  ],
  logPath: '/tmp/kpng-log-7-x/kpng.log',
  warning: undefined,
}

describe('the screen', () => {
  test('shows who answers, the endpoints, the last change and what to try', () => {
    expect(render(state, 80, 24)).toBe(
      `kpng playground · kpng's userspace proxy on loopback
Service      default/web, ClusterIP, http://127.96.1.1:8080
Answers now  web-1-aaaaa in 1.9 ms
Last change  11:20:24 in the data plane after 4.2 ms: web-1-bbbbb not ready

ENDPOINT     ADDRESS          STATE      ANSWERS
web-1-aaaaa  127.10.0.2:8080  ready      ████████████ 24
web-1-bbbbb  127.10.0.3:8080  not ready  0
web-1-ccccc  127.10.0.4:8080  draining   █ 2

In another terminal:
  export KUBECONFIG=/tmp/kpng-playground-7-x/kubeconfig
  kubectl scale deployment web --replicas 5   other pods answer
  kubectl delete pod web-1-aaaaa              it drains, another takes over

Ctrl-C ends it. Log: /tmp/kpng-log-7-x/kpng.log`,
    )
  })

  test('on a small terminal leaves out what matters least, and cuts lines', () => {
    expect(render(state, 50, 13)).toBe(
      `kpng playground · kpng's userspace proxy on loopb…
Service      default/web, ClusterIP, http://127.9…
Answers now  web-1-aaaaa in 1.9 ms
Last change  11:20:24 in the data plane after 4.2…

ENDPOINT     ADDRESS          STATE      ANSWERS
web-1-aaaaa  127.10.0.2:8080  ready      ████████…
web-1-bbbbb  127.10.0.3:8080  not ready  0
web-1-ccccc  127.10.0.4:8080  draining   █ 2

Ctrl-C ends it. Log: /tmp/kpng-log-7-x/kpng.log`,
    )
    for (const rows of [1, 5, 8, 9, 20]) expect(render(state, 30, rows).split('\n').length).toBeLessThanOrEqual(rows)
  })

  test('counts the endpoints that do not fit', () => {
    const endpoints = Array.from({ length: 40 }, (_, index) => endpoint(`web-${index}`, index))
    const text = render({ ...state, service: { type: 'ClusterIP', endpoints } }, 80, 24)
    expect(text.split('\n')).toHaveLength(24)
    expect(text).toMatch(/^… and \d+ more$/m)
    expect(text).toContain('kubectl scale')
  })

  test.each([
    [{ service: undefined }, 'Service      there is none: kubectl expose deployment web --port 8080'],
    [{ service: undefined }, 'Answers now  nobody is called'],
    [{ service: undefined }, 'No endpoints'],
    [{ answer: { problem: 'connection refused', ms: 1 } }, 'Answers now  nobody: connection refused'],
    [{ change: undefined }, 'Last change  none yet'],
    [
      { change: { what: 'Service web at 127.96.1.1:8080', at: '11:20:24' } },
      'Last change  11:20:24 Service web at 127.96.1.1:8080\n',
    ],
    [{ warning: 'Sync failed' }, '\nSync failed\nCtrl-C ends it.'],
    [
      { service: { type: 'ClusterIP', endpoints: [], problem: 'it is headless' } },
      'default/web, ClusterIP, it is headless',
    ],
    [
      { service: { type: 'NodePort', endpoints: [], target: { host: '10.96.0.9', port: 80 }, nodePort: 30123 } },
      'default/web, NodePort, http://10.96.0.9:80, node port 30123',
    ],
  ] satisfies [Partial<ScreenState>, string][])('%j', (change, expected) => {
    expect(render({ ...state, ...change }, 100, 30)).toContain(expected)
  })

  test('has colours only if asked to, and they take no room', () => {
    const coloured = render(state, 50, 24, true)
    expect(coloured).toContain('\x1b[32mready      \x1b[0m')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are made of them
    expect(coloured.replace(/\x1b\[\d+m/g, '')).toBe(render(state, 50, 24))
  })

  test('nothing in it can move the cursor', () => {
    expect(render({ ...state, warning: 'a\x1b[2Jb\nc' }, 80, 24)).toContain('a [2Jb c')
  })
})
