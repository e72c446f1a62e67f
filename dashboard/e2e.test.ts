import { execFileSync, spawnSync } from 'node:child_process'
import { statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { namespacesOf, whySkipped } from '@kpng/linux/lab'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Commands, type Running } from '../cli/testing/commands.js'
import { hasBrowser, startBrowser, type TestBrowser } from './testing/browser.js'
import { refused, services, shop } from './testing/shop.js'

// The page of a real kpng: the playground on loopback, and a lab with nftables. With KPNG_PICTURES=docs/dashboard the pictures that the tests take become those of the documents.

const limitMs = 90_000
const kpng = new URL('../cli/bin/kpng.js', import.meta.url).pathname
const commands = new Commands()

const why = !hasBrowser
  ? 'there is no /usr/bin/chromium'
  : spawnSync('kubectl', ['version', '--client'], { stdio: 'ignore' }).status !== 0
    ? 'there is no kubectl'
    : !spawnSync(process.execPath, [kpng, 'playground', '--help'], { encoding: 'utf8' }).stdout?.includes('--dashboard')
      ? 'this kpng has no --dashboard'
      : ''
if (why !== '') console.warn(`SKIPPED: the live page of a real kpng, because ${why}.`)
const noLab = why !== '' ? why : whySkipped('the live page of a lab with nftables', 'nft')

let browser: TestBrowser

async function start(
  ...args: string[]
): Promise<{ run: Running; url: string; kubectl: (...words: string[]) => string }> {
  const kubeconfig = join(commands.folder(), 'kubeconfig')
  const run = commands.start('kpng', 'playground', '--kubeconfig', kubeconfig, ...args)
  await run.says(/→ web-/, limitMs)
  const env = { ...process.env, KUBECONFIG: kubeconfig }
  const url = /http:\/\/127\.0\.0\.1:\d+\//.exec(run.stdout)?.[0]
  if (url === undefined) throw new Error(`The playground did not print the address of its page: ${run.stdout}`)
  return { run, url, kubectl: (...words) => execFileSync('kubectl', words, { env, encoding: 'utf8' }) }
}

const until = (holds: () => unknown) => expect.poll(holds, { timeout: limitMs, interval: 20 })
const text = (page: Page, selector: string) => page.locator(selector).first().innerText()
const pictures = process.env.KPNG_PICTURES

async function takePicture(page: Page, name: string): Promise<void> {
  const path = join(pictures ?? commands.folder(), `${name}.png`)
  // A moment for marks of changes and charts, where somebody will look at it.
  if (pictures !== undefined) await page.waitForTimeout(3000)
  await page.screenshot({ path, fullPage: name === 'service-light' })
  expect(statSync(path).size).toBeGreaterThan(20_000)
}

describe.skipIf(why !== '')('a real kpng', () => {
  beforeAll(async () => {
    browser = await startBrowser()
  }, 300_000)
  afterEach(() => commands.cleanUp())
  afterAll(() => browser?.close())

  test('the playground: search, open, kill a pod, break a Service, stop it and start it again', async () => {
    const first = await start('--dashboard', '127.0.0.1:0')
    const { page, complaints, context } = await browser.open(first.url)
    await until(() => text(page, '.live')).toBe('live')
    await page.locator('#search').fill('web')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Enter')
    await until(() => page.locator('.endpoint.used').count()).toBe(3)

    const pod = first.kubectl('get', 'pods', '-o', 'name').split('\n')[0]?.replace('pod/', '') ?? ''
    first.kubectl('delete', 'pod', pod, '--wait=false')
    await until(() => page.locator('.endpoint.used', { hasText: pod }).count()).toBe(0)
    await until(() => page.locator('.endpoint.used').count()).toBe(3)
    expect(await page.locator('.history li').count()).toBeGreaterThan(0)

    first.kubectl('patch', 'service', 'web', '-p', '{"spec":{"selector":{"app":"nobody"}}}')
    await until(() => text(page, '.badge')).toContain('refused')
    await until(() => text(page, '.sentence')).toContain('A connection from a pod is refused: no endpoint serves it.')
    first.kubectl('patch', 'service', 'web', '-p', '{"spec":{"selector":{"app":"web"}}}')
    await until(() => page.locator('.endpoint.used').count()).toBe(3)

    // Endpoints that leave without being used are told too.
    first.kubectl('scale', 'deployment', 'web', '--replicas', '5')
    await page.goto(`${first.url}#/?q=default/web`)
    await until(() => text(page, '.row-used')).toBe('5 of 5')
    first.kubectl('scale', 'deployment', 'web', '--replicas', '2')
    await until(() => text(page, '.row-used')).toMatch(/^2 of [345]$/)
    await until(() => text(page, '.row-used')).toBe('2 of 2')
    first.kubectl('scale', 'deployment', 'web', '--replicas', '3')
    await page.goto(`${first.url}#/service/default/web`)
    await until(() => page.locator('.endpoint.used').count()).toBe(3)
    expect(complaints).toEqual([])

    await first.run.stop()
    await until(() => text(page, '.band')).toContain('The agent does not answer.')
    expect(await text(page, '.live')).toMatch(/^lost/)
    await start('--dashboard', new URL(first.url).host)
    await until(() => text(page, '.live')).toBe('live')
    await until(() => page.locator('.endpoint.used').count()).toBe(3)
    await context.close()
  })

  test('the playground with a shop in it: every Service is there, and the pictures of the documents are taken', async () => {
    const { url, kubectl } = await start('--dashboard', '127.0.0.1:0')
    const file = join(commands.folder(), 'shop.json')
    writeFileSync(file, JSON.stringify(shop))
    kubectl('create', '-f', file)
    const notReady = (...words: string[]) => kubectl('label', 'pod', ...words, 'playground.kpng.io/ready=false')
    const podsOf = (app: string) =>
      kubectl('get', 'pods', '-n', 'catalog', '-l', `app=${app}`, '-o', 'name').split('\n')
    await until(() => podsOf('search').length).toBeGreaterThan(6)
    notReady('-n', 'catalog', podsOf('search')[0]?.replace('pod/', '') ?? '')

    const { page, complaints, context } = await browser.open(url, { deviceScaleFactor: 1.5 })
    // With the demo Service and kubernetes.
    const served = `${services + 2 - refused} of ${services + 2} Services are served`
    await until(() => text(page, 'main')).toContain(served)
    await page.locator('#search').fill('catalog/search')
    await until(() => text(page, '.service-row')).toContain('1 not ready of 6 endpoints')
    await page.locator('#search').fill('')
    await until(() => text(page, '.list h2')).toBe(`${services + 2} Services`)
    await takePicture(page, 'services-light')
    await page.goto(`${url}#/service/catalog/search`)
    await until(() => page.locator('.endpoint.used').count()).toBe(5)
    expect(await page.locator('.endpoint', { hasText: 'not ready' }).count()).toBe(1)
    await takePicture(page, 'service-light')
    await page.goto(`${url}#/changes`)
    await page.locator('.change-row').nth(1).click()
    await takePicture(page, 'changes')

    const address = (name: string) =>
      kubectl('get', 'service', '-n', 'payments', name, '-o', 'jsonpath={.spec.clusterIP}')
    const sockets = ['api', 'cards', 'fraud', 'ledger', 'refunds', 'wallets'].map((name) =>
      connect(8080, address(name)),
    )
    for (const [index, socket] of sockets.entries()) {
      socket.on('error', () => {}).write('GET / HTTP/1.1\r\nHost: shop\r\n\r\n'.repeat(1 + index * 3))
    }
    await page.goto(`${url}#/connections`)
    await until(() => text(page, 'main')).toContain(`${sockets.length} open connections`)
    await takePicture(page, 'connections')
    for (const socket of sockets) socket.destroy()
    expect(complaints).toEqual([])
    await context.close()
  })

  test.skipIf(noLab)('a lab with nftables: an element that is deleted by hand, "differs", and the repair', async () => {
    const { run, url } = await start('--lab', 'nft', '--dashboard', '127.0.0.1:0')
    const { page, complaints, context } = await browser.open(`${url}#/service/default/web`)
    await until(() => text(page, '.held')).toContain('exactly what it should hold')
    expect(await text(page, '.held')).toContain('10.96.1.1:8080/tcp')
    const node = (await namespacesOf(run.child.pid ?? 0)).find((name) => name.endsWith('-node')) ?? ''
    const nft = (...words: string[]) =>
      execFileSync('ip', ['netns', 'exec', node, 'nft', ...words], { encoding: 'utf8' })
    const element =
      /10\.96\.1\.1 \. tcp \. 8080 \. 0 : [^,}\s]+ \. \d+/.exec(nft('list', 'map', 'ip', 'kpng', 'endpoints'))?.[0] ??
      ''
    const syncs = await page.locator('.history li').count()
    expect(element).not.toBe('')
    // It is shown for about a second: written down by the page itself, which cannot miss it.
    await page.evaluate(`
      window.badges = []
      const note = () => window.badges.push(document.querySelector('.badge').innerText)
      new MutationObserver(note).observe(document.querySelector('.title'), { subtree: true, childList: true, characterData: true })
    `)
    nft('delete', 'element', 'ip', 'kpng', 'endpoints', `{ ${element} }`)
    await until(() => nft('list', 'map', 'ip', 'kpng', 'endpoints')).toContain(element)
    await until(() => page.evaluate('window.badges.join()')).toContain('differs')
    await until(() => text(page, '.badge')).toContain('serving')
    expect(await page.locator('.history li').count()).toBeGreaterThan(syncs)
    await until(() => text(page, '.held')).toContain('exactly what it should hold')
    expect(complaints).toEqual([])
    await context.close()
  })
})
