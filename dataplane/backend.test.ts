import { KpngError, silentLog } from '@kpng/api'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  backendOf,
  type DataPlane,
  type Leftovers,
  type SkeletonOptions,
  type Wanted,
  type Written,
} from './backend.js'
import { FrontendTable } from './frontend-table.js'
import { change, endpoint, fullSync, ips, tcp, udp, view } from './testing/objects.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const web = {
  name: 'web',
  ips: { clusterIps: ips('10.96.0.1') },
  ports: [tcp(80)],
  endpoints: [endpoint('10.244.1.5')],
}
const dns = {
  name: 'dns',
  ips: { clusterIps: ips('10.96.0.2') },
  ports: [udp(53)],
  endpoints: [endpoint('10.244.1.6')],
}

/** A data plane that writes into `seen`. The test says what its functions do. */
function served(brings: Partial<DataPlane<string, string>> = {}, options: Partial<SkeletonOptions> = {}) {
  const seen = {
    calls: [] as string[],
    requested: [] as string[],
    repaired: [] as string[][],
    logged: [] as string[],
    notice: () => {},
  }
  const log = {
    ...silentLog,
    info: (message: string) => void seen.logged.push(message),
    warn: (message: string) => void seen.logged.push(message),
    error: (message: string) => void seen.logged.push(message),
  }
  const plane: DataPlane<string, string> = {
    name: 'fake',
    needs: { rights: [], programs: [] },
    lockName: 'fake table',
    families: ['IPv4', 'IPv6'],
    observations: { listener: { repaired: (services) => void seen.repaired.push([...services]) } },
    open: async (onNotice) => {
      seen.notice = onNotice
      seen.calls.push('open')
    },
    read: async () => 'what was there',
    plan: async (wanted: Wanted<string>) => {
      if (wanted.isCheck) return 'check'
      return wanted.full ? `everything beside ${await wanted.held}` : `${wanted.changed.frontends.length} changed`
    },
    write: async (plan) => void seen.calls.push(plan),
    remove: async () => void seen.calls.push('remove'),
    close: () => void seen.calls.push('close'),
    features: () => ({}) as never,
    held: async () => undefined,
    ...brings,
  }
  const host = {
    check: () => {},
    lock: async (name: string) => {
      seen.calls.push(`lock ${name}`)
      return { release: async () => void seen.calls.push('release') }
    },
    addresses: () => [],
  }
  const backend = backendOf(plane, { frontends: new FrontendTable(), host, log, ...options })
  return { backend, seen, runner: { requestFullSync: (reason: string) => void seen.requested.push(reason) } }
}

describe('the states of a backend', () => {
  test('everything first, then what changed, and everything again after a failure', async () => {
    let fails = false
    const { backend, seen, runner } = served({
      write: async (plan) => {
        expect(backend.state).toBe('syncing')
        seen.calls.push(plan)
        if (fails) throw new Error('no memory')
        return undefined
      },
    })
    expect(backend.state).toBe('unknown')
    await backend.setup(runner)
    const now = view([web])
    await backend.sync(now, fullSync)
    expect(backend.state).toBe('in step')
    await backend.sync(now, change(now, 'dns', dns))
    fails = true
    await expect(backend.sync(now, change(now, 'dns', undefined))).rejects.toThrow('no memory')
    expect(backend.state).toBe('unknown')
    fails = false
    // Even if the runner did not ask for it.
    await backend.sync(now, change(now, 'dns', dns))
    await backend.close()
    expect(backend.state).toBe('closed')
    expect(seen.calls).toEqual([
      ...['lock fake table', 'open', 'everything beside what was there', '1 changed', '1 changed'],
      ...['everything beside what was there', 'close', 'release'],
    ])
  })

  test('a close waits for the sync that is under way, and nothing can be asked afterwards', async () => {
    let finish = () => {}
    const { backend, seen, runner } = served({
      write: async (plan) => {
        seen.calls.push(plan)
        await new Promise<void>((resolve) => {
          finish = resolve
        })
        seen.calls.push('written')
        return undefined
      },
    })
    await backend.setup(runner)
    const syncing = backend.sync(view([web]), fullSync)
    await vi.advanceTimersByTimeAsync(0)
    const closing = backend.close()
    await vi.advanceTimersByTimeAsync(100)
    finish()
    await Promise.all([syncing, closing])
    expect(seen.calls.slice(-3)).toEqual(['written', 'close', 'release'])
    expect(backend.state).toBe('closed')
    await expect(backend.sync(view([]), fullSync)).rejects.toThrow('The fake backend was not set up')
    await expect(backend.hasRules()).rejects.toThrow('was not set up')
  })

  test('what is missing or locked ends the setup, and what was taken is given back', async () => {
    const { backend, seen, runner } = served({
      open: async () => {
        throw new KpngError('unsupported', 'The kernel is too old.')
      },
    })
    await expect(backend.setup(runner)).rejects.toThrow('The kernel is too old.')
    await backend.close()
    expect(seen.calls).toEqual(['lock fake table', 'close', 'release'])
  })

  test('a plan that fails before it has waited for what is read fails the sync, and not the process', async () => {
    const { backend, runner } = served({
      read: async () => {
        throw new Error('cannot be read')
      },
      plan: async () => {
        await null
        throw new Error('cannot be planned')
      },
    })
    await backend.setup(runner)
    await expect(backend.sync(view([web]), fullSync)).rejects.toThrow('cannot be planned')
    await vi.advanceTimersByTimeAsync(0)
    await backend.close()
  })
})

describe('what others do', () => {
  const looking = { driftCheckIntervalMs: 1000 }

  test('a look that finds a change asks for a full sync; the kernel can make it come at once', async () => {
    const { backend, seen, runner } = served({ drift: () => 'a rule is gone' }, looking)
    await backend.setup(runner)
    await vi.advanceTimersByTimeAsync(1500)
    // It is not known yet what should be there.
    expect(seen.requested).toEqual([])
    await backend.sync(view([web]), fullSync)
    await vi.advanceTimersByTimeAsync(500)
    expect(seen.requested).toEqual(['a rule is gone'])
    await vi.advanceTimersByTimeAsync(100)
    seen.notice()
    await vi.advanceTimersByTimeAsync(10)
    expect(seen.requested).toHaveLength(2)
    await backend.close()
    seen.notice()
    await vi.advanceTimersByTimeAsync(5000)
    expect(seen.requested).toHaveLength(2)
  })

  test('repairs are told, but not at the start, and not those of Services that changed', async () => {
    const write = async (): Promise<Written> => ({ repaired: ['default/web', 'default/dns', 'default/web'] })
    const { backend, seen, runner } = served({ write })
    await backend.setup(runner)
    const now = view([web, dns])
    await backend.sync(now, fullSync)
    expect(seen.repaired).toEqual([])
    await backend.sync(now, { ...change(now, 'dns', dns), full: true })
    expect(seen.repaired).toEqual([['default/web']])
    await backend.close()
  })

  test('what other backends left is removed after the first sync that succeeds', async () => {
    let fails = true
    const { backend, seen, runner } = served(
      {
        write: async (plan) => {
          if (fails) throw new Error('no memory')
          seen.calls.push(plan)
          return undefined
        },
      },
      { leftovers: ['to-ebpf', 'to-ipvs', 'to-iptables'].map((of) => leftover(of)) },
    )
    const there: Record<string, string[]> = { 'to-ebpf': ['/sys/fs/bpf/kpng'], 'to-iptables': ['KUBE-SERVICES'] }
    function leftover(of: string): Leftovers {
      return {
        of,
        find: async () => (of === 'to-ipvs' ? Promise.reject(new Error('no such kernel')) : (there[of] ?? [])),
        remove: async () => {
          seen.calls.push(`removed ${there[of]}`)
          delete there[of]
        },
      }
    }
    await backend.setup(runner)
    await expect(backend.sync(view([web]), fullSync)).rejects.toThrow()
    await vi.advanceTimersByTimeAsync(0)
    expect(Object.keys(there)).toHaveLength(2)
    fails = false
    await backend.sync(view([web]), fullSync)
    await backend.sync(view([web]), fullSync)
    await backend.close()
    expect(there).toEqual({})
    expect(seen.calls.filter((call) => call.startsWith('removed'))).toEqual([
      'removed /sys/fs/bpf/kpng',
      'removed KUBE-SERVICES',
    ])
    expect(seen.logged.join('\n')).toContain('What another backend may have left could not be removed')
  })
})

test('checks come soon while something is missing, then each period, until the backend is closed', async () => {
  let isComplete = false
  const checkedAt: number[] = []
  const startedMs = Date.now()
  const write = async (plan: string): Promise<Written> => {
    if (plan === 'check') checkedAt.push(Math.round((Date.now() - startedMs) / 1000))
    return { isComplete }
  }
  const { backend, runner } = served({ write }, { checkIntervalMs: 30_000 })
  await backend.setup(runner)
  await backend.sync(view([web]), fullSync)
  await vi.advanceTimersByTimeAsync(8000)
  expect(checkedAt).toEqual([1, 3, 7])
  isComplete = true
  await vi.advanceTimersByTimeAsync(72_000)
  expect(checkedAt).toEqual([1, 3, 7, 15, 45, 75])
  await backend.close()
  await vi.advanceTimersByTimeAsync(100_000)
  expect(checkedAt).toHaveLength(6)
})

test('UDP flows are looked for after each sync that may have left some', async () => {
  const asked: unknown[] = []
  const host = {
    check: () => {},
    lock: async () => ({ release: async () => {} }),
    addresses: () => [],
    deleteFlows: async (selection: unknown) => asked.push(selection),
  }
  const { backend, runner } = served({}, { host })
  await backend.setup(runner)
  const now = view([web, dns])
  await backend.sync(now, fullSync)
  const look = { family: 'IPv4', protocol: 'udp', ports: [53] }
  expect(asked).toEqual([look])
  await backend.sync(now, change(now, 'web', undefined))
  expect(asked).toHaveLength(1)
  await backend.sync(now, change(now, 'dns', { ...dns, endpoints: [endpoint('10.244.1.7')] }))
  expect(asked).toEqual([look, look])
  await backend.close()
})
