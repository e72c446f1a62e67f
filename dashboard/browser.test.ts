import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { hasBrowser, startBrowser, type TestBrowser } from './testing/browser.js'
import { MockAgent, type MockAgentOptions } from './testing/mock-agent.js'
import type { MockEndpoint, MockService } from './testing/mock-cluster.js'

// The page in a real browser, with a mock agent that speaks the contract of api/live.ts.

const folder = new URL('.', import.meta.url).pathname
const example = 'payments/api'
const limitMs = 90_000
const phone = { viewport: { width: 390, height: 844 } }

if (!hasBrowser)
  console.warn('SKIPPED: the tests of the live page need /usr/bin/chromium (Debian: apt-get install chromium).')

let browser: TestBrowser
const agents: MockAgent[] = []
const pages: { page: Page; complaints: string[] }[] = []

beforeAll(() => {
  execFileSync(process.execPath, [join(folder, 'build.js')])
})

test('the page is small: 42 kB at most, compressed', () => {
  const files = readdirSync(join(folder, 'dist')).filter((name) => /\.(html|js|css)$/.test(name))
  const sizes = files.map((name) => gzipSync(readFileSync(join(folder, 'dist', name)), { level: 9 }).length)
  expect(files).toHaveLength(3)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(42_000)
})

describe.skipIf(!hasBrowser)('in a browser', { timeout: 300_000 }, () => {
  beforeAll(async () => {
    browser = await startBrowser()
  }, 300_000)
  afterEach(async () => {
    const complaints = pages.flatMap((each) => each.complaints)
    await Promise.all(pages.splice(0).map(({ page }) => page.context().close()))
    await Promise.all(agents.splice(0).map((agent) => agent.close()))
    // What the strict content security policy forbids would be among them.
    expect(complaints).toEqual([])
  })
  afterAll(() => browser?.close())

  interface Opened extends MockAgentOptions {
    readonly hash?: string
    readonly search?: string
    readonly context?: BrowserContextOptions
    readonly prepare?: (agent: MockAgent) => void
  }

  async function open({ hash = '#/', search = '', context, prepare, ...options }: Opened = {}) {
    const agent = new MockAgent({ services: 120, ...options })
    agents.push(agent)
    prepare?.(agent)
    const opened = await browser.open(`${await agent.start()}${search}${hash}`, context)
    opened.page.setDefaultTimeout(limitMs)
    pages.push(opened)
    return { ...opened, agent }
  }

  const until = (holds: () => unknown) => expect.poll(holds, { timeout: limitMs, interval: 20 })
  const text = (page: Page, selector: string) => page.locator(selector).first().innerText()
  const focused = (page: Page) =>
    page.evaluate(
      () => document.activeElement?.closest('[data-index]')?.getAttribute('data-index') ?? document.activeElement?.id,
    )
  const hashOf = (page: Page) => page.evaluate(() => location.hash)

  test('shows 5,000 Services: verdict, map and list', async () => {
    const { page } = await open({ services: 5000 })
    await until(() => text(page, 'h1')).toMatch(/of 5,000 Services are served/)
    expect(await text(page, '.list h2')).toBe('5,000 Services')
    // The worst first, and only what is seen is in the document.
    expect(await text(page, '.service-row')).toContain('the data plane does not hold what it should')
    expect(await page.locator('.service-row').count()).toBeLessThan(40)
    expect(await page.locator('.map').getAttribute('aria-label')).toContain('Every Service as one cell')
    const chips = await page.locator('.chip b').allInnerTexts()
    expect(chips.reduce((sum, chip) => sum + Number(chip.replace(',', '')), 0)).toBe(5000)
  })

  test('a cell of the map says what it is, and opens its Service', async () => {
    const { page } = await open()
    const box = await page.locator('.map').boundingBox()
    if (!box) throw new Error('The map is not shown.')
    await page.mouse.move(box.x + 5, box.y + 22)
    await until(() => text(page, '.tip')).toMatch(/used/)
    const name = await text(page, '.tip b')
    await page.mouse.click(box.x + 5, box.y + 22)
    await until(() => hashOf(page)).toContain(`/${name}`)
  })

  test('finds by name, state, what is left out, and the address of an endpoint', async () => {
    const { page, agent } = await open()
    const search = page.locator('#search')
    const shown = () => text(page, '.list h2')
    await search.fill('payments')
    await until(shown).toMatch(/^\d+ of 120$/)
    await search.fill('-serving')
    await until(() => page.locator('.service-row .state-serving').count()).toBe(0)
    const endpoint = agent.cluster.services.get(example)?.endpoints[0]?.ips[0] ?? ''
    await search.fill(endpoint)
    await until(shown).toBe('1 of 120')
    expect(await text(page, '.service-row')).toContain('payments')
    await search.fill('zzzz')
    await until(() => text(page, '.list .nothing')).toContain('No Service matches.')
    await page.getByRole('button', { name: 'Show all' }).click()
    await until(shown).toBe('120 Services')
    await page.locator('.chip', { hasText: 'partly' }).click()
    await until(() => page.locator('.service-row .state-serving').count()).toBe(0)
  })

  test('the filter is in the address: it survives a reload, another page and a link', async () => {
    const { page } = await open()
    await page.locator('#search').fill('pay')
    await page.locator('.chip', { hasText: 'serving' }).click()
    await until(() => hashOf(page)).toBe('#/?q=pay&state=serving')
    const shown = await text(page, '.list h2')
    await page.reload()
    await until(() => text(page, '.list h2')).toBe(shown)
    expect(await page.locator('#search').inputValue()).toBe('pay')
    await page.locator('.service-row').first().click()
    await until(() => hashOf(page)).toContain('#/service/')
    await page.locator('.back').click()
    await until(() => hashOf(page)).toBe('#/?q=pay&state=serving')
    await page.evaluate(() => {
      location.hash = '#/?q=api&order=name'
    })
    await until(() => page.locator('#search').inputValue()).toBe('api')
    expect(await page.locator('.chip[aria-pressed=true]').count()).toBe(0)
    await page.locator('#search').fill('')
    await page.locator('.sort select').selectOption('worst')
    await until(() => hashOf(page)).toBe('#/')
  })

  test('works without a mouse', async () => {
    const { page } = await open({ services: 300 })
    await page.locator('.service-row').first().waitFor()
    await page.keyboard.press('/')
    await until(() => focused(page)).toBe('search')
    await page.keyboard.type('pay')
    await until(() => text(page, '.list h2')).toMatch(/ of 300$/)
    await page.keyboard.press('ArrowDown')
    await until(() => focused(page)).toBe('0')
    for (const key of ['j', 'j', 'k']) await page.keyboard.press(key)
    await until(() => focused(page)).toBe('1')
    await page.keyboard.press('End')
    await until(() => focused(page)).not.toBe('1')
    await page.keyboard.press('Enter')
    await until(() => hashOf(page)).toContain('#/service/pay')
    await page.keyboard.press('Escape')
    await until(() => hashOf(page)).toBe('#/')
    await page.keyboard.press('Escape')
    await until(() => text(page, '.list h2')).toBe('300 Services')
    await page.keyboard.press('g')
    await page.keyboard.press('c')
    await page.locator('.change-row').first().waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.locator('.spans').waitFor()
    await page.keyboard.press('Escape')
    await until(() => hashOf(page)).toBe('#/changes')
  })

  test('Escape leaves a page that was opened just before', async () => {
    const { page } = await open({ services: 3 })
    await page.locator('.service-row').first().waitFor()
    await page.evaluate((opened) => {
      location.hash = opened
      dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))
    }, `#/service/${example}`)
    await until(() => hashOf(page)).toBe('#/')
  })

  describe('a Service', () => {
    const hash = `#/service/${example}`

    test('who asks, which address, which family and port decide who answers', async () => {
      const { page } = await open({ hash })
      await until(() => text(page, '.sentence')).toBe(
        "A connection from a pod goes to one of 3 endpoints at random. The endpoint sees the client's address.",
      )
      expect(await page.locator('.endpoint.used').count()).toBe(3)
      await page.getByRole('radio', { name: /^outside/ }).check()
      await page.getByRole('radio', { name: /load-balancer IP/ }).check()
      await until(() => text(page, '.sentence')).toContain('from outside the cluster goes to one of 2 endpoints')
      expect(await text(page, '.how')).toContain('Only clients in 198.51.100.0/24 may connect.')
      expect(await page.locator('.wires path').count()).toBe(4)
      expect(await text(page, '.copy code')).toBe('kpng explain 203.0.113.80:443/tcp --from outside')
      await page.getByText('IPv6', { exact: true }).click()
      await until(() => text(page, '.endpoint.used .mono')).toMatch(/^\[fd00:244::/)
      await page.getByText('metrics 9102').click()
      await until(() => text(page, '.endpoint.used .mono')).toMatch(/:9102$/)
    })

    test('follows a change, with the reason', async () => {
      const { page, agent } = await open({ hash })
      await until(() => page.locator('.endpoint.used').count()).toBe(3)
      const address = (await text(page, '.endpoint.used .mono')).split(':')[0] as string
      agent.change(example, `${address} of ${example} is not ready`, ({ endpoints }) => {
        Object.assign(endpoints.find(({ ips }) => ips[0] === address) as MockEndpoint, { ready: false, serving: false })
      })
      await until(() => page.locator('.endpoint.used').count()).toBe(2)
      const row = page.locator('.endpoint', { hasText: `${address}:` }).filter({ hasText: 'not ready' })
      await until(() => row.count()).toBe(1)
      await until(() => text(page, '.history')).toContain(`${address} is not ready`)
    })

    test('shows what the data plane lacks, and the repair', async () => {
      const { page, agent } = await open({ hash })
      await until(() => text(page, '.held')).toContain('exactly what it should hold')
      const setDiffers = (differs: boolean) => (service: MockService) => {
        service.differs = differs
      }
      agent.change(example, 'another program changed it', setDiffers(true))
      await until(() => text(page, '.held')).toContain('The data plane lacks')
      expect(await text(page, '.badge')).toContain('differs')
      expect(await text(page, '.sentence')).toContain('The data plane lacks')
      agent.change(example, 'everything was compared', setDiffers(false))
      await until(() => text(page, '.held')).toContain('exactly what it should hold')
    })

    test('a data plane that cannot be read back, and a core that cannot be asked', async () => {
      const { page } = await open({ hash, cannotReadBack: true, knowsUsedOnly: true })
      await until(() => text(page, '.held')).toContain('cannot be read back')
      await page.getByText('What nobody could say').click()
      await until(() => text(page, '.findings')).toContain('The core is older')
      expect(await page.locator('.endpoint.used').count()).toBe(3)
    })

    test('what was found, with the command that helps, and no full green bar', async () => {
      const { page, agent } = await open({ hash })
      await page.locator('.sentence').waitFor()
      agent.change(example, `${example} was changed`, (service) => {
        service.problems = ['203.0.113.80:443/tcp belongs to Service web/other']
      })
      await until(() => text(page, '.badge')).toContain('partly')
      await until(() => text(page, '.findings li')).toMatch(/belongs to Service web\/other[\s\S]*KPNG-S010/)
      expect(await text(page, '.findings code')).toBe('kubectl get services -A')
      expect(await text(page, '.headline')).toContain('belongs to Service web/other')
      await page.goto(page.url().replace(/#.*/, `#/?q=${example}`))
      await until(() => page.locator('.service-row .meter').getAttribute('class')).toBe('meter state-partly')
    })

    test('one that does not exist gets an answer', async () => {
      const { page } = await open({ hash: '#/service/shop/none' })
      await until(() => text(page, '.sentence')).toBe('There is no Service shop/none. Did you mean payments/api?')
    })
  })

  test('changes: where the time went, and what failed', async () => {
    const { page, agent } = await open({ hash: '#/changes' })
    await page.locator('.change-row').nth(2).click()
    await until(() => page.locator('.spans > li').count()).toBe(7)
    expect(await text(page, '.waterfall')).toContain('received → in the store')
    agent.change(example, `${example} was changed`, () => {}, 'The kernel refused it.')
    // While a change is read, the list holds still.
    await page.getByRole('button', { name: '1 newer' }).click()
    await until(() => text(page, '.change-row')).toContain('failed: The kernel refused it.')
    await page.getByLabel('failed only').check()
    await until(() => page.locator('.change-row:not(.failed)').count()).toBe(0)
    await page.locator('.change-row').first().click()
    await until(() => text(page, '.error-text')).toContain('The kernel refused it.')
  })

  test('connections, or why there are none', async () => {
    const { page } = await open({ hash: '#/connections', backend: 'userspace' })
    await until(() => text(page, '.list h2')).toMatch(/^\d+ open connections$/)
    expect(await text(page, 'a.connection-row')).toMatch(/MB/)
    const { page: other } = await open({ hash: '#/connections' })
    await until(() => text(other, '.nothing')).toContain('The kernel carries the connections.')
  })

  test('a core: its nodes, how far each is behind, and what one of them sees', async () => {
    const { page } = await open({ role: 'core', hash: '#/nodes' })
    await until(() => text(page, '.node-row')).toMatch(/worker-39[\s\S]*behind for 4\d s, 39 revisions/)
    const away = page.locator('.node-row', { hasText: 'not connected' })
    expect(await away.innerText()).toMatch(/worker-20[\s\S]*what it serves is not known/)
    expect(await away.locator('.dot.off').count()).toBe(1)
    await page.locator('.node-row').first().click()
    await until(() => text(page, '.node')).toContain('worker-39, as core-1 sees it')
    await until(() => page.locator('.service-row').count()).toBeGreaterThan(0)
  })

  describe('states', () => {
    test('loading', async () => {
      const { page } = await open({
        prepare: (agent) => {
          agent.isSilent = true
        },
      })
      await until(() => text(page, 'main')).toContain('Asking the agent for its Services')
    })

    test('empty, then one Service', async () => {
      const { page, agent } = await open({ services: 0 })
      await until(() => text(page, 'h1')).toBe('No Services yet.')
      const [service] = new MockAgent({ services: 1 }).cluster.services.values()
      agent.add(service as MockService)
      await until(() => text(page, 'h1')).toBe('The only Service is served.')
      await until(() => text(page, '.sentence')).toContain('A connection from a pod goes to')
      agent.remove(example)
      await until(() => text(page, 'h1')).toBe('No Services yet.')
    })

    test('lost in grey with its age, then resumed from the last event', async () => {
      const { page, agent } = await open()
      await until(() => text(page, '.live')).toBe('live')
      agent.refusal = { status: 503, error: 'kpng is stopping.' }
      agent.disconnect()
      await until(() => text(page, '.band')).toMatch(/does not answer.*What you see is as of \d\d:\d\d:\d\d/)
      expect(await text(page, '.live')).toMatch(/^lost (just now|.* ago)$/)
      expect(await text(page, '.band')).toContain('its rules keep working in the kernel')
      expect(await page.locator('.service-row').count()).toBeGreaterThan(0)
      expect(await page.locator('main').evaluate((main) => getComputedStyle(main).filter)).toContain('grayscale')
      agent.change(example, 'while nobody looked', (service) => {
        service.endpoints = []
      })
      agent.refusal = undefined
      await until(() => text(page, '.live')).toBe('live')
      expect(agent.resumedFrom.at(-1)).toMatch(/^mock\.\d+$/)
      await page.locator('#search').fill(example)
      await until(() => text(page, '.service-row')).toContain('no EndpointSlice of it lists an endpoint')
      pages[0]?.complaints.splice(0)
    })

    test('a data plane that carries connections itself ends with the agent', async () => {
      const { page, agent, complaints } = await open({ services: 3, backend: 'userspace' })
      await until(() => text(page, '.live')).toBe('live')
      agent.refusal = { status: 503, error: 'kpng is stopping.' }
      agent.disconnect()
      await until(() => text(page, '.band')).toContain('nobody serves connections')
      complaints.splice(0)
    })

    test('nothing is called up to date before the first sync', async () => {
      const { page } = await open({ isUnsynced: true, services: 3 })
      await until(() => text(page, '.live')).toBe('not synced yet')
      expect(await text(page, '.band')).toContain('Not everything is known yet.')
      expect(await text(page, '.flow')).toContain('nothing written yet')
      const { page: empty } = await open({ isUnsynced: true, services: 0 })
      await until(() => text(empty, 'h1')).toBe('Which Services there are is not known yet.')
      const { page: core } = await open({ isUnsynced: true, role: 'core' })
      await until(() => text(core, '.band')).toContain('Nodes get nothing before that.')
    })

    test.each([
      [401, 'This dashboard needs a token.', 'The agent does not let you in.'],
      [403, 'The host is not allowed.', 'The agent does not let you in.'],
      [404, 'The agent API has no /v1/stream.', 'This agent is older than the page.'],
      [500, 'Something broke.', 'The agent does not answer.'],
    ])('status %i: %s', async (status, error, title) => {
      const { page, agent, complaints } = await open({
        prepare: (each) => {
          each.refusal = { status, error }
        },
      })
      await until(() => text(page, 'h1')).toBe(title)
      expect(await text(page, 'main')).toContain(error)
      agent.refusal = undefined
      await until(() => text(page, '.live')).toBe('live')
      // A browser notes each refused request.
      complaints.splice(0)
    })

    test('an older agent whose stream has no states and no pulses', async () => {
      const { page } = await open({ isOlder: true })
      await until(() => text(page, 'h1')).toMatch(/Services are served/)
      expect(await page.locator('.chart').count()).toBe(0)
    })

    test('a source that is stale', async () => {
      const { page } = await open({
        prepare: (agent) => {
          agent.staleReason = 'No connection to the API server since 14:02:11.'
        },
      })
      await until(() => text(page, '.band')).toContain('No connection to the API server since 14:02:11.')
      expect(await text(page, '.live')).toBe('stale')
    })

    test('in a playground, commands to paste', async () => {
      const hints = [{ command: 'kubectl scale deployment web --replicas 5', effect: 'other pods answer' }]
      const { page } = await open({ services: 3, hints })
      await until(() => text(page, '.hints')).toContain('kubectl scale deployment web --replicas 5')
      await page.reload()
      // It folds away after the first visit.
      await until(() => page.locator('.hints').getAttribute('open')).toBeNull()
      await page.locator('.hints summary').click()
      await until(() => page.locator('.hints code').isVisible()).toBe(true)
    })
  })

  test('less motion: nothing moves', async () => {
    const { page, agent } = await open({ context: { reducedMotion: 'reduce' } })
    await page.locator('.service-row').first().waitFor()
    const before = await text(page, '.total')
    agent.change(example, `${example} was changed`, () => {})
    await until(() => text(page, '.total')).not.toBe(before)
    expect(await page.evaluate(() => document.getAnimations().length)).toBe(0)
  })

  test('the theme is kept', async () => {
    const { page } = await open()
    await page.getByRole('button', { name: 'Theme: auto. Change to light' }).click()
    await page.getByRole('button', { name: 'Theme: light. Change to dark' }).click()
    await page.reload()
    await page.getByRole('button', { name: 'Theme: dark. Change to auto' }).waitFor()
    expect(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)).toBe(
      'rgb(14, 16, 19)',
    )
  })

  describe('accessible', () => {
    const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
    const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

    async function violations(page: Page): Promise<string[]> {
      await page.evaluate(axe)
      return page.evaluate(async (runOnly) => {
        const { axe: tool } = window as unknown as { axe: { run(root: Document, options: object): Promise<AxeResult> } }
        const result = await tool.run(document, { runOnly })
        return result.violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target.join(' ')}`))
      }, rules)
    }
    interface AxeResult {
      readonly violations: readonly {
        readonly id: string
        readonly nodes: readonly { readonly target: readonly string[] }[]
      }[]
    }

    const views: readonly (readonly [string, Opened, string])[] = [
      ['Services', {}, '.service-row'],
      ['few Services', { services: 6, hints: [{ command: 'kubectl get pods', effect: 'lists pods' }] }, '.endpoint'],
      ['a Service', { hash: `#/service/${example}` }, '.held-list'],
      ['a change', { hash: '#/changes/120' }, '.spans'],
      ['connections', { hash: '#/connections', backend: 'userspace' }, 'a.connection-row'],
      ['no connections', { hash: '#/connections' }, '.nothing'],
      ['nodes', { hash: '#/nodes', role: 'core' }, '.node-row'],
      ['empty', { services: 0 }, '.nothing'],
      ['Services on a phone', { context: phone }, '.service-row'],
      ['a Service on a phone', { context: phone, hash: `#/service/${example}` }, '.held-list'],
    ]
    test.each(views)('%s, light and dark', async (_, options, ready) => {
      const { page } = await open(options)
      await page.locator(ready).first().waitFor()
      const found: string[] = []
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        found.push(...(await violations(page)).map((each) => `${colorScheme} ${each}`))
      }
      expect(found).toEqual([])
      await until(() => page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0)
    })

    test('forced colours: shapes and borders remain', async () => {
      const { page } = await open({ context: { forcedColors: 'active' }, hash: `#/service/${example}` })
      await page.locator('.pick.on').first().waitFor()
      expect(
        await page
          .locator('.pick.on')
          .first()
          .evaluate((pick) => getComputedStyle(pick).outlineStyle),
      ).toBe('solid')
      expect(await violations(page)).toEqual([])
    })
  })
})
