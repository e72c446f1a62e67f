import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

// A real browser: Debian's Chromium.

const executablePath = '/usr/bin/chromium'
export const hasBrowser = existsSync(executablePath)

/** Without these, Chromium asks for updates and the like, which a machine without the internet refuses many times. */
const args = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

export interface TestBrowser {
  /** A page in a context of its own, and what its console had to complain about. */
  open(
    url: string,
    options?: BrowserContextOptions,
  ): Promise<{ page: Page; complaints: string[]; context: BrowserContext }>
  close(): Promise<void>
}

export async function startBrowser(moreArgs: readonly string[] = []): Promise<TestBrowser> {
  const profile = mkdtempSync(join(tmpdir(), 'kpng-chromium-'))
  const browser = await chromium.launch({
    executablePath,
    args: [...args, `--crash-dumps-dir=${profile}`, ...moreArgs],
  })
  return {
    async open(url, options) {
      const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options })
      const page = await context.newPage()
      const complaints: string[] = []
      page.on('pageerror', ({ message }) => complaints.push(message))
      page.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
      })
      await page.goto(url)
      return { page, complaints, context }
    },
    async close() {
      await browser.close()
      rmSync(profile, { recursive: true, force: true })
    },
  }
}
