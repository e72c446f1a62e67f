import { parseArgs } from 'node:util'
import type { CDPSession } from 'playwright-core'
import { startBrowser } from './browser.js'
import { MockAgent } from './mock-agent.js'

// node dashboard/testing/run.js measure [--services 5000] [--rate 100] [--seconds 120] [--loads 5] [--trace] [--url …]: first paint, all shown, typing, and the heap over some minutes. With a URL: of a running kpng.

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '5000' },
    rate: { type: 'string', default: '100' },
    seconds: { type: 'string', default: '120' },
    loads: { type: 'string', default: '5' },
    url: { type: 'string' },
    /** Says what the main thread did while somebody typed. */
    trace: { type: 'boolean', default: false },
  },
})

declare global {
  interface Window {
    shownAt: number | undefined
    typedMs: number[]
    keyMs: number[]
    longTasks: number[]
  }
}

const slowdowns = [1, 4]
const texts = ['payments', '10.96.3', 'refused', '-serving local', 'api v2']
const quantile = (list: readonly number[], share: number) =>
  list.toSorted((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * share))] ?? Number.NaN
const ms = (value: number) => `${value.toFixed(1)} ms`

const agent = new MockAgent({ services: Number(values.services), changesPerSecond: Number(values.rate) })
const url = values.url ?? (await agent.start())
const browser = await startBrowser(['--js-flags=--expose-gc'])
for (const slowdown of slowdowns) await measureLoads(slowdown)
await measureTyping()
await measureHeap(Number(values.seconds))
await browser.close()
await agent.close()

async function measureLoads(slowdown: number): Promise<void> {
  const paints: number[] = []
  const shown: number[] = []
  for (let load = 0; load < Number(values.loads); load++) {
    const { page, context } = await browser.open('about:blank')
    const session = await context.newCDPSession(page)
    await session.send('Emulation.setCPUThrottlingRate', { rate: slowdown })
    await page.addInitScript(noteWhenShown)
    await page.goto(url)
    await page.waitForFunction(() => window.shownAt !== undefined)
    shown.push((await page.evaluate(() => window.shownAt)) ?? Number.NaN)
    paints.push(
      await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.NaN),
    )
    await context.close()
  }
  console.log(
    `CPU ÷ ${slowdown}: first paint ${ms(quantile(paints, 0.5))}, all shown ${ms(quantile(shown, 0.5))} (median of ${paints.length})`,
  )
}

/** Runs in the page: when list and map are there, and painted. */
function noteWhenShown(): void {
  new MutationObserver((_, observer) => {
    if (!document.querySelector('.service-row')) return
    observer.disconnect()
    requestAnimationFrame(() =>
      setTimeout(() => {
        window.shownAt = performance.now()
      }),
    )
  }).observe(document, { childList: true, subtree: true })
}

/** Runs in the page: how long after a key its frame is done. */
function noteTyping(): void {
  window.typedMs = []
  window.keyMs = []
  window.longTasks = []
  addEventListener(
    'input',
    () => {
      const start = performance.now()
      requestAnimationFrame(() => {
        const channel = new MessageChannel()
        channel.port1.onmessage = () => window.typedMs.push(performance.now() - start)
        channel.port2.postMessage(0)
      })
    },
    true,
  )
  const observe = (type: string, take: (entry: PerformanceEntry) => void) =>
    new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({
      ...{ type, buffered: true },
      ...({ durationThreshold: 16 } as object),
    })
  observe('event', (entry) => {
    if (entry.name === 'keydown') window.keyMs.push(entry.duration)
  })
  observe('longtask', (entry) => window.longTasks.push(entry.duration))
}

async function measureTyping(): Promise<void> {
  const { page, context } = await browser.open('about:blank')
  await page.addInitScript(noteTyping)
  await page.goto(url)
  await page.locator('.service-row').first().waitFor()
  await page.waitForTimeout(2000)
  const session = await context.newCDPSession(page)
  for (const slowdown of slowdowns) {
    await session.send('Emulation.setCPUThrottlingRate', { rate: slowdown })
    await page.evaluate(() => {
      window.typedMs.length = 0
      window.keyMs.length = 0
    })
    const stopTrace = values.trace ? await startTrace(session) : undefined
    for (const text of texts) {
      await page.fill('#search', '')
      await page.locator('#search').pressSequentially(text, { delay: 70 })
    }
    await stopTrace?.()
    const { typed, keys } = await page.evaluate(() => ({ typed: window.typedMs, keys: window.keyMs }))
    console.log(
      `Typing, CPU ÷ ${slowdown}: input to painted p50 ${ms(quantile(typed, 0.5))}, p95 ${ms(quantile(typed, 0.95))}, most ${ms(Math.max(...typed))} (${typed.length} keys); key to next paint over 16 ms: ${keys.length} keys, p95 of those ${ms(quantile(keys, 0.95))}`,
    )
  }
  await context.close()
}

interface TraceEvent {
  readonly name: string
  readonly ph: string
  readonly ts: number
  readonly dur?: number
  /** Of the processor. */
  readonly tdur?: number
  readonly tid: number
  readonly pid: number
  readonly args?: { readonly name?: string }
}

/** Returns the function that ends it and says what each kind of work took in all, by thread. */
async function startTrace(session: CDPSession): Promise<() => Promise<void>> {
  const events: TraceEvent[] = []
  session.on('Tracing.dataCollected', ({ value }) => {
    for (const event of value) events.push(event as unknown as TraceEvent)
  })
  const categories = 'devtools.timeline,disabled-by-default-devtools.timeline,cc,blink,v8,__metadata,viz,gpu'
  await session.send('Tracing.start', { transferMode: 'ReportEvents', categories })
  return async () => {
    const done = new Promise((resolve) => session.once('Tracing.tracingComplete', resolve))
    await session.send('Tracing.end')
    await done
    for (const line of selfTimes(events)) console.log(line)
  }
}

/** What the main thread did itself, without what other events inside took: processor time, the most first. */
function selfTimes(events: readonly TraceEvent[]): string[] {
  const main = events.find(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain')
  const mine = events
    .filter(({ ph, pid, tid, tdur }) => ph === 'X' && tdur !== undefined && pid === main?.pid && tid === main?.tid)
    .sort((a, b) => a.ts - b.ts || (b.dur ?? 0) - (a.dur ?? 0))
  const sums = new Map<string, { sum: number; count: number }>()
  const open: { readonly end: number; readonly name: string }[] = []
  const add = (name: string, ms: number, count: number) => {
    const known = sums.get(name) ?? { sum: 0, count: 0 }
    sums.set(name, { sum: known.sum + ms, count: known.count + count })
  }
  for (const { name, ts, dur = 0, tdur = 0 } of mine) {
    while (open.length > 0 && (open.at(-1)?.end ?? 0) <= ts) open.pop()
    const parent = open.at(-1)
    if (parent) add(parent.name, -tdur / 1000, 0)
    add(name, tdur / 1000, 1)
    open.push({ end: ts + dur, name })
  }
  return [...sums]
    .sort(([, a], [, b]) => b.sum - a.sum)
    .slice(0, 25)
    .map(([name, { sum, count }]) => `  ${sum.toFixed(0).padStart(6)} ms in ${String(count).padStart(6)} × ${name}`)
}

async function measureHeap(seconds: number): Promise<void> {
  if (seconds === 0) return
  const { page, context } = await browser.open('about:blank')
  await page.addInitScript(noteTyping)
  await page.goto(url)
  await page.locator('.service-row').first().waitFor()
  const session = await context.newCDPSession(page)
  for (const domain of ['Performance.enable', 'HeapProfiler.enable'] as const) await session.send(domain)
  await page.waitForTimeout(3000)
  const before = await heapOf(session)
  const started = Date.now()
  console.log(`Heap at the start ${(before.JSHeapUsedSize / 1e6).toFixed(2)} MB, ${before.Nodes} nodes`)
  for (let second = 0; second < seconds; second += 30) {
    await page.waitForTimeout(Math.min(30, seconds - second) * 1000)
    const now = await heapOf(session)
    console.log(
      `after ${Math.min(second + 30, seconds)} s: ${(now.JSHeapUsedSize / 1e6).toFixed(2)} MB, ${now.Nodes} nodes, ${now.JSEventListeners} listeners`,
    )
  }
  const after = await heapOf(session)
  const share = (name: string) =>
    `${((((after[name] ?? 0) - (before[name] ?? 0)) / ((Date.now() - started) / 1000)) * 100).toFixed(1)} %`
  console.log(
    `Main thread busy ${share('TaskDuration')} (script ${share('ScriptDuration')}, layout ${share('LayoutDuration')}, style ${share('RecalcStyleDuration')}); long tasks ${await page.evaluate(() => window.longTasks.length)}`,
  )
  await context.close()
}

async function heapOf(
  session: CDPSession,
): Promise<Record<string, number> & { JSHeapUsedSize: number; Nodes: number; JSEventListeners: number }> {
  await session.send('HeapProfiler.collectGarbage')
  const { metrics } = await session.send('Performance.getMetrics')
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value])) as never
}
