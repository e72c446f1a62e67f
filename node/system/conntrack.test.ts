import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { recordingLog } from '../../core/testing/until.js'
import { defaultSettings } from '../config/settings.js'
import { withoutRoot } from '../testing/without-root.js'
import { applyConntrack, conntrackValues } from './conntrack.js'
import { applyOomScore } from './oom-score.js'

const sysctl = (name: string) => `proc/sys/net/netfilter/nf_conntrack_${name}`
const hashSize = 'sys/module/nf_conntrack/parameters/hashsize'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'kpng-system-'))
  chmodSync(root, 0o755)
})
afterEach(() => rmSync(root, { recursive: true }))

const put = (path: string, value: number) => {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), `${value}\n`)
}
const get = (path: string) => readFileSync(join(root, path), 'utf8')

describe('what is wanted', () => {
  const wanted = (settings: object, cores = 8) =>
    Object.fromEntries(
      conntrackValues({ ...defaultSettings, ...settings }, cores).map(({ path, value }) => [path, value]),
    )

  test('by default', () => {
    expect(wanted({})).toEqual({
      [sysctl('max')]: 262_144,
      [hashSize]: 65_536,
      [sysctl('tcp_timeout_established')]: 86_400,
      [sysctl('tcp_timeout_close_wait')]: 3600,
    })
  })

  test.each([
    ['few cores: the minimum', { conntrackMin: 131_072 }, 2, 131_072],
    ['many cores: so many per core', { conntrackMaxPerCore: 10_000 }, 64, 640_000],
    ['very many cores: no more than kube-proxy sets', {}, 64, 1_048_576],
    ['0 per core: not changed', { conntrackMaxPerCore: 0 }, 8, undefined],
  ])('%s', (_, settings, cores, max) => {
    expect(wanted(settings, cores)[sysctl('max')]).toBe(max)
    expect(hashSize in wanted(settings, cores)).toBe(max !== undefined)
  })

  test('0 leaves a timeout, and everything can be set', () => {
    expect(
      wanted({
        conntrackMaxPerCore: 0,
        conntrackTcpEstablishedTimeoutMs: 0,
        conntrackTcpCloseWaitTimeoutMs: 60_999,
        conntrackTcpBeLiberal: true,
        conntrackUdpTimeoutMs: 30_000,
        conntrackUdpStreamTimeoutMs: 120_000,
      }),
    ).toEqual({
      [sysctl('tcp_timeout_close_wait')]: 60,
      [sysctl('tcp_be_liberal')]: 1,
      [sysctl('udp_timeout')]: 30,
      [sysctl('udp_timeout_stream')]: 120,
    })
  })
})

describe('what is done', () => {
  const settings = { ...defaultSettings, conntrackMaxPerCore: 1000, conntrackMin: 1 }
  const apply = () => {
    const { lines, log } = recordingLog()
    return applyConntrack({ settings, log, cores: 4, root }).then((applied) => ({
      lines,
      outcomes: Object.fromEntries(applied.map(({ path, outcome }) => [path, outcome])),
    }))
  }
  const all = () => {
    put(sysctl('max'), 1)
    put(hashSize, 999)
    put(sysctl('tcp_timeout_established'), 86_400)
    put(sysctl('tcp_timeout_close_wait'), 60)
  }

  test('only what is not as it should be is written', async () => {
    all()
    const { outcomes, lines } = await apply()
    expect(outcomes).toEqual({
      [sysctl('max')]: 'set',
      [hashSize]: 'set',
      [sysctl('tcp_timeout_established')]: 'kept',
      [sysctl('tcp_timeout_close_wait')]: 'set',
    })
    expect([get(sysctl('max')), get(hashSize), get(sysctl('tcp_timeout_close_wait'))].map(Number)).toEqual([
      4000, 1000, 3600,
    ])
    expect(lines).toHaveLength(3)
  })

  test('nf_conntrack_max is never lowered, and the log says that it was left', async () => {
    all()
    put(sysctl('max'), 4001)
    const { outcomes, lines } = await apply()
    expect(outcomes[sysctl('max')]).toBe('kept')
    expect(Number(get(sysctl('max')))).toBe(4001)
    expect(lines.join('\n')).toMatch(/higher already.*nf_conntrack_max/)
  })

  test('a greater table of lists is left', async () => {
    all()
    put(hashSize, 5000)
    expect((await apply()).outcomes[hashSize]).toBe('kept')
  })

  test('a file that may not be written is warned about, and the rest goes on', async () => {
    all()
    for (const path of [hashSize, sysctl('tcp_timeout_established'), sysctl('tcp_timeout_close_wait')]) {
      chmodSync(join(root, path), 0o666)
    }
    chmodSync(join(root, sysctl('max')), 0o444)
    const { outcomes, lines } = await withoutRoot(apply)
    expect(outcomes).toMatchObject({ [sysctl('max')]: 'failed', [sysctl('tcp_timeout_close_wait')]: 'set' })
    const warnings = lines.filter((line) => line.startsWith('W'))
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toContain('nf_conntrack_max')
    expect(warnings[0]).toContain('--init-only')
  })

  test('a kernel without conntrack is warned about', async () => {
    const { outcomes, lines } = await apply()
    expect(new Set(Object.values(outcomes))).toEqual(new Set(['failed']))
    expect(lines[0]).toContain('Load the module nf_conntrack')
    expect(() => get(sysctl('max'))).toThrow()
  })
})

describe('the OOM score', () => {
  test('is written, or warned about', async () => {
    const { lines, log } = recordingLog()
    put('oom', 0)
    expect(await applyOomScore({ value: -999, log, path: join(root, 'oom') })).toBe(true)
    expect(get('oom').trim()).toBe('-999')
    expect(await applyOomScore({ value: -999, log, path: join(root, 'nowhere') })).toBe(false)
    expect(lines).toEqual([expect.stringContaining('CAP_SYS_RESOURCE')])
  })
})
