import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentStatus } from '@kpng/api'
import { afterEach, expect, test } from 'vitest'
import { Commands, type Running } from './testing/commands.js'

// `--dashboard` as users give it.

const commands = new Commands()
afterEach(() => commands.cleanUp())

const state = `services:
- service:
    namespace: default
    name: web
    type: ClusterIP
    ips: { clusterips: { v4: [127.97.1.9] }, externalips: {} }
    ports: [{ name: http, protocol: 1, port: 18089, targetport: 8080 }]
  endpoints:
  - { endpoint: { ips: { v4: [127.10.0.1] } }, conditions: { ready: true } }
`

const quietAgent = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
healthzBindAddress: ""
metricsBindAddress: ""
oomScoreAdj: 0
conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s }
`

function files() {
  const folder = commands.folder()
  const [input, config] = [join(folder, 'state.yaml'), join(folder, 'config.yaml')]
  writeFileSync(input, state)
  writeFileSync(config, quietAgent)
  return { input, config }
}

const node = ({ input, config }: ReturnType<typeof files>, ...flags: string[]) =>
  commands.start(
    ...(['kpng', 'file', '-i', input, 'to-local', 'to-userspacelin', '--capture', 'none', '--config', config] as const),
    ...['--agent-socket', '', ...flags],
  )

const core = ({ input }: ReturnType<typeof files>, ...flags: string[]) =>
  commands.start('kpng', 'file', '-i', input, 'to-api', '--listen', '127.0.0.1:0', '--agent-socket', '', ...flags)

async function urlOf(running: Running): Promise<string> {
  await running.says('Serving the dashboard')
  return /url="([^"]+)"/.exec(running.stderr)?.[1] as string
}

test.each([
  ['node', node],
  ['core', core],
])('a %s serves its agent API and the page on loopback', async (role, start) => {
  const running = start(files(), '--dashboard', '127.0.0.1:0')
  const url = await urlOf(running)
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/)
  const ask = async (path: string) => (await fetch(new URL(path, url))).json()
  await expect
    .poll(async () => (await ask('v1/status')) as AgentStatus, { timeout: 90_000 })
    .toMatchObject({ role, services: 1, endpoints: 1 })
  const page = await fetch(url)
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(await page.text()).toMatch(/<html|The live page is not part of this kpng/)
  expect(await running.stop()).toMatchObject({ code: 0 })
})

test('without a value it is on port 12080, or near it', async () => {
  const running = core(files(), '--dashboard')
  expect(Number(new URL(await urlOf(running)).port)).toBeGreaterThanOrEqual(12_080)
})

const wrong: readonly (readonly [readonly string[], string])[] = [
  [['--dashboard', '0.0.0.0:12080'], 'can be reached from other machines. Give --dashboard-token-file'],
  [['--dashboard', 'nowhere'], '--dashboard takes an IP address and a port'],
  [['--dashboard', '--dashboard-tls-crt', 'x'], 'Give --dashboard-tls-crt and --dashboard-tls-key together'],
  [['--dashboard-token-file', 'x'], 'The dashboard is not served unless --dashboard says where'],
]

test('wrong usage is said before anything is served', async () => {
  const cases = wrong.map(async ([flags, sentence], index) => {
    const { code, stderr } = await (index % 2 === 0 ? node : core)(files(), ...flags).finished
    expect(stderr).toContain(sentence)
    expect(code).toBe(2)
  })
  await Promise.all(cases)
})
