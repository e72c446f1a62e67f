import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { namespacesOf, whySkipped } from '@kpng/linux/lab'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Commands, type Running } from '../cli/testing/commands.js'
import { hasBrowser, startBrowser, type TestBrowser } from './testing/browser.js'

// The page of a real kpng: the playground on loopback, and a lab with nftables.

const limitMs = 30_000
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

describe.skipIf(why !== '')('a real kpng', { timeout: 180_000 }, () => {
  beforeAll(async () => {
    browser = await startBrowser()
  }, 60_000)
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
    // A pod that is still terminating makes it `partly`.
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

  test.skipIf(noLab)('a lab with nftables: an element that is deleted by hand, and the repair', async () => {
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
    nft('delete', 'element', 'ip', 'kpng', 'endpoints', `{ ${element} }`)
    await until(() => nft('list', 'map', 'ip', 'kpng', 'endpoints')).toContain(element)
    // The repair may follow at once; the sync of it stays in the list.
    await until(() => page.locator('.history li').count()).toBeGreaterThan(syncs)
    await until(() => text(page, '.held')).toContain('exactly what it should hold')
    expect(complaints).toEqual([])
    await context.close()
  })
})
