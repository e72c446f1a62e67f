import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { startBrowser } from './browser.js'
import { MockAgent, type MockAgentOptions } from './mock-agent.js'

// node dashboard/testing/run.js shoot [--url http://127.0.0.1:12080/] <folder> [name …]: a picture of each page and state, to look at. With a URL they are taken of a running kpng: those that need
// a cluster of their own are left out. The pictures in the documents are taken by e2e.test.ts.

interface Shot {
  readonly hash?: string
  readonly search?: string
  readonly theme?: 'light' | 'dark'
  readonly size?: readonly [number, number]
  readonly isWhole?: boolean
  /** The cluster; without it, 5,000 Services. */
  readonly cluster?: MockAgentOptions
  /** Only with a cluster of its own. */
  readonly prepare?: (agent: MockAgent) => void
  readonly act?: (page: Page, agent: MockAgent | undefined) => Promise<void>
}

const example = '#/service/payments/api'
const phone = [390, 844] as const
const chooseOutside = async (page: Page) => {
  await page.getByRole('radio', { name: /^outside/ }).check()
  await page.getByRole('radio', { name: /load-balancer IP/ }).check()
  await page.locator('.sentence', { hasText: 'outside' }).waitFor()
  await page.evaluate('document.activeElement.blur()')
}
const openFirst = (state: string) => async (page: Page) => {
  await page.locator('.chip', { hasText: state }).click()
  await page.locator('.service-row').first().click()
  await page.locator('.sentence').waitFor()
}
const hints = [
  { command: 'kubectl scale deployment web --replicas 5', effect: 'other pods answer' },
  { command: 'kubectl label pod web-389fac43a2-z76hp playground.kpng.io/ready=false', effect: 'it gets no more calls' },
  { command: 'kubectl delete pod web-389fac43a2-8xsvn', effect: 'it drains, and a new one replaces it' },
  {
    command: 'kubectl patch service web -p \'{"spec":{"sessionAffinity":"ClientIP"}}\'',
    effect: 'one pod answers all calls',
  },
]

const shots: Readonly<Record<string, Shot>> = {
  'services-light': {},
  'services-dark': { theme: 'dark' },
  'service-light': { hash: example, isWhole: true, act: chooseOutside },
  'service-dark': { hash: example, isWhole: true, theme: 'dark' },
  'service-ipv6': { hash: example, isWhole: true, act: (page) => page.getByText('IPv6', { exact: true }).click() },
  changes: { hash: '#/changes', act: (page) => page.locator('.change-row').nth(3).click() },
  'changes-failed': {
    hash: '#/changes',
    act: (page) => page.locator('.change-row.failed').first().click(),
    theme: 'dark',
  },
  connections: { hash: '#/connections', cluster: { services: 80, backend: 'userspace' } },
  nodes: { hash: '#/nodes', cluster: { role: 'core', services: 300 } },
  'core-services': { cluster: { role: 'core', services: 300 } },
  narrow: { size: phone, isWhole: true },
  'narrow-service': { hash: example, size: phone, isWhole: true, theme: 'dark' },
  medium: { size: [1024, 768], isWhole: true },
  playground: { cluster: { services: 6, backend: 'userspace', changesPerSecond: 1, hints }, isWhole: true },
  'one-service': { cluster: { services: 1 }, isWhole: true },
  refused: { act: openFirst('refused'), isWhole: true, theme: 'dark' },
  dropped: { act: openFirst('dropped here'), isWhole: true },
  differs: { act: openFirst('differs'), isWhole: true },
  filter: { act: (page) => page.fill('#search', 'pay -serving') },
  'no-match': { act: (page) => page.fill('#search', 'zzzz') },
  hover: { theme: 'dark', act: (page) => page.mouse.move(60, 500) },
  stale: {
    cluster: { services: 5000 },
    act: async (page, agent) => {
      if (agent) agent.refusal = { status: 503, error: 'kpng is stopping.' }
      agent?.disconnect()
      await page.locator('.band').waitFor()
      await page.waitForTimeout(4500)
    },
  },
  'stale-source': {
    cluster: { services: 60 },
    prepare: (agent) => {
      agent.staleReason = 'No connection to the API server since 14:02:11: connection refused.'
    },
  },
  empty: { cluster: { services: 0 } },
  denied: {
    cluster: { services: 5 },
    prepare: (agent) => {
      agent.refusal = { status: 401, error: 'This dashboard needs a token.' }
    },
  },
  older: {
    cluster: { services: 5 },
    prepare: (agent) => {
      agent.refusal = { status: 404, error: 'The agent API has no /v1/stream.' }
    },
  },
  'cannot-read-back': {
    hash: example,
    cluster: { services: 300, cannotReadBack: true, knowsUsedOnly: true },
    isWhole: true,
  },
}

const [folder, ...names] = process.argv
  .slice(2)
  .filter((word, index, all) => word !== '--url' && all[index - 1] !== '--url')
if (folder === undefined) {
  console.error('Say where the pictures go: node dashboard/testing/run.js shoot <folder> [name …]')
  process.exit(2)
}
const urlAt = process.argv.indexOf('--url')
const given = urlAt < 0 ? undefined : process.argv[urlAt + 1]
mkdirSync(folder, { recursive: true })
const browser = await startBrowser()
const shared = new MockAgent({ changesPerSecond: 9 })
await shared.start()
for (const [name, shot] of Object.entries(shots)) {
  if (names.length > 0 && !names.includes(name)) continue
  if (given !== undefined && (shot.cluster || shot.prepare)) continue
  await take(name, shot)
}
await browser.close()
await shared.close()

async function take(name: string, shot: Shot): Promise<void> {
  const { hash = '#/', search = '', theme = 'light', size = [1440, 900], isWhole = false, act, prepare } = shot
  const own = shot.cluster ? new MockAgent(shot.cluster) : undefined
  if (own) prepare?.(own)
  const url = own ? await own.start() : (given ?? shared.url)
  const [width, height] = size
  const { page, complaints } = await browser.open(`${url}${search}${hash}`, {
    ...{ viewport: { width, height }, colorScheme: theme, deviceScaleFactor: width < 500 ? 2 : 1.5 },
  })
  await page.locator('h1').first().waitFor()
  // A few pulses, so that charts and marks of changes are there.
  await page.waitForTimeout(1600)
  await act?.(page, own)
  await page.waitForTimeout(500)
  await page.screenshot({ path: join(folder as string, `${name}.png`), fullPage: isWhole })
  if (complaints.length > 0) console.log(name, complaints)
  await page.context().close()
  await own?.close()
}
