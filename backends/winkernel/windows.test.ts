import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Wine, whyNoWine } from './testing/windows.js'

const why = whyNoWine()
if (why !== undefined) console.warn(`SKIPPED: the winkernel backend with a stub of computenetwork.dll: ${why}`)

describe.skipIf(why !== undefined)('the winkernel backend with a stub of computenetwork.dll, under wine', () => {
  let folder: string
  let wine: Wine
  let result: Record<string, unknown>

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'kpng-winkernel-'))
    wine = new Wine(folder)
    result = (await wine.run('windows-run.ts', 150_000)) as typeof result
  }, 300_000)
  afterAll(() => {
    wine?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('calls the library as it must be called, and understands its answers', () => {
    expect(result.platform).toBe('win32')
    expect(result.answers).toEqual({
      version: { Major: 15, Minor: 4 },
      podNamed: [{ IpAddress: '10.244.1.5' }, { IpAddress: 'fd00:244:1::5' }],
      unknown: 'undefined',
      deletedTwice: 'no error',
      sameFrontend: 'HcnCreateLoadBalancer 803b0013',
      withoutEndpoints: 'HcnCreateLoadBalancer 803b001c',
      takenIp: 'HcnCreateEndpoint 803b002f',
      withoutProvider: 'HcnCreateEndpoint 803b000d',
      message: 'HcnCreateLoadBalancer failed with 0x803b0013: The specified port already exists.',
      textWithoutLoss: 'Grüße, 世界',
    })
  })

  it('makes the documents of golden.txt', () => {
    expect(result.golden).toBe(readFileSync(new URL('testing/golden.txt', import.meta.url), 'utf8'))
  })

  it('is right after HNS failed at any call of a sync', () => {
    const most = 40
    for (const calls of Object.values(result.failing as object)) {
      expect(calls).toBeTypeOf('number')
      expect(calls).toBeGreaterThan(10)
      expect(calls).toBeLessThan(most)
    }
  })

  it('writes nothing if 1,000 load balancers are right, also after a restart', () => {
    expect(result.thousand).toEqual({
      loadBalancers: 1000,
      idle: [
        ...['HcnEnumerateNetworks', 'HcnOpenNetwork', 'HcnQueryNetworkProperties'],
        ...['HcnEnumerateEndpoints', 'HcnEnumerateLoadBalancers'],
      ],
      adopted: [],
    })
  })

  it('conformance: probe, sync, traffic and clean pass, and a refusing HNS fails', () => {
    const { l2bridge, overlay, traffic, refusing } = result.conformance as Record<string, Record<string, unknown>>
    const reports = (sync: number, probe: number) => [
      { command: 'probe', passed: probe, failed: [] },
      { command: 'sync', passed: sync, failed: [] },
      { command: 'clean', passed: 1, failed: [] },
    ]
    expect(l2bridge).toMatchObject({ reports: reports(25, 2), guesses: [], isAsBefore: true })
    expect(overlay).toMatchObject({ reports: reports(24, 3), guesses: [], isAsBefore: true })
    expect(l2bridge?.made).toBeGreaterThan(20)
    expect(traffic).toEqual({ command: 'traffic', passed: 6, failed: [] })
    expect(refusing).toContain(
      'cluster IP: HNS does not hold 198.18.0.1:80/tcp: HcnCreateLoadBalancer failed with 0x803b000d: injected.',
    )
  })

  it('closes every handle and frees every text, once', () => {
    expect(result.leaks).toEqual({ openHandles: 0, liveTexts: 0, doubleFrees: 0, badHandles: 0, dangling: 0 })
  })

  it('would see a leak, a double free, and a wrong or closed handle', () => {
    expect(result.mistakes).toEqual({
      ...{ openHandle: 1, wrongKind: 1, closedTwice: 2, leakedText: 1, freedTwice: 1 },
      atTheEnd: { openHandles: 0, liveTexts: 0, doubleFrees: 1, badHandles: 2, dangling: 0 },
    })
  })
})
