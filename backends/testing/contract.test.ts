import { execFileSync } from 'node:child_process'
import { silentLog } from '@kpng/api'
import type { FrontendAddress } from '@kpng/client'
import type { SteppedBackend } from '@kpng/dataplane'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { change, endpoint, fullSync, ips, tcp, thisNode, view } from '../../dataplane/testing/objects.js'
import { enterNewNamespace, whySkipped } from '../../linux/testing/index.js'
import { ebpfBackend } from '../ebpf/backend.js'
import { Sandbox, whyNoEbpf } from '../ebpf/testing/sandbox.js'
import { iptablesBackend } from '../iptables/backend.js'
import { nftBackend } from '../nft/backend.js'
import { nftCapture, userspaceBackend } from '../userspace/index.js'
import { winkernelBackend } from '../winkernel/backend.js'
import { FakeHcn } from '../winkernel/testing/fake-hcn.js'
import { makeNetwork, options as onWindows } from '../winkernel/testing/node.js'

// What every backend does alike, on the real kernel where it has one. What one of them cannot do is skipped, with the reason.

interface Candidate {
  readonly make: () => SteppedBackend | Promise<SteppedBackend>
  /** Why it cannot be tested here. */
  readonly whyNot?: string | undefined
  /** Why its rules do not outlive the process. */
  readonly endsWithProcess?: string
  /** Why nothing keeps a second process away. */
  readonly hasNoLock?: string
  /** Before the first test and after the last. */
  readonly prepare?: () => Promise<void>
  readonly end?: () => void
}

let sandbox: Sandbox
let hcn: FakeHcn
const common = { log: silentLog, nodePortAddresses: ['all'] }
const kernel = { prepare: enterNewNamespace }
const noIptables = whySkipped('the contract on iptables', 'iptables-nft', 'iptables-legacy')
const noNft = whySkipped('the contract on nftables')

const candidates: Record<string, Candidate> = {
  nft: { ...kernel, whyNot: noNft, make: () => nftBackend({ ...common, tableName: 'kpng' }) },
  'iptables (nft)': {
    ...kernel,
    whyNot: noIptables,
    make: () => iptablesBackend({ ...common, name: 'kpng', flavour: 'nft' }),
  },
  'iptables (legacy)': {
    ...{ ...kernel, whyNot: noIptables },
    make: () => iptablesBackend({ ...common, name: 'kpng', flavour: 'legacy' }),
  },
  ebpf: {
    whyNot: whyNoEbpf(),
    prepare: async () => {
      sandbox = await Sandbox.make()
      await sandbox.enter()
    },
    end: () => sandbox.remove(),
    make: () =>
      ebpfBackend({ ...common, tableName: 'kpng', maxEndpoints: 64, cgroup: sandbox.cgroup, bpffs: sandbox.bpffs }),
  },
  userspace: {
    ...{ ...kernel, whyNot: noNft, endsWithProcess: 'the process itself carries the traffic' },
    make: () =>
      userspaceBackend({
        ...common,
        mover: 'portable',
        capture: nftCapture({ log: silentLog, table: 'kpng-userspace' }),
      }),
  },
  winkernel: {
    hasNoLock: 'HNS does not say whose load balancers are whose',
    prepare: async () => {
      hcn = new FakeHcn()
      await makeNetwork(hcn, 'l2bridge')
    },
    make: () => winkernelBackend({ ...common, ...onWindows(hcn, 'l2bridge') }),
  },
}

const web = (...endpoints: string[]) => ({
  name: 'web',
  ips: { clusterIps: ips('10.96.0.1') },
  ports: [tcp(80)],
  endpoints: endpoints.map((ip) => endpoint(ip)),
})
const clusterIp: FrontendAddress = {
  kind: 'clusterIP',
  family: 'IPv4',
  address: '10.96.0.1',
  protocol: 'tcp',
  port: 80,
}
const viewOf = (...endpoints: string[]) => ({
  ...view([web(...endpoints)]),
  node: thisNode({ addresses: ['172.30.0.1'] }),
})

describe.each(Object.entries(candidates))('%s', (_, { make, whyNot, endsWithProcess, hasNoLock, prepare, end }) => {
  if (whyNot !== undefined) return void test.skip(whyNot, () => {})
  const runner = { requestFullSync: () => {} }
  const running: SteppedBackend[] = []
  const start = async () => {
    const backend = await make()
    running.push(backend)
    await backend.setup(runner)
    return backend
  }
  const held = async (backend: SteppedBackend) => [...((await backend.held(clusterIp))?.inside ?? [])].sort()

  beforeAll(async () => {
    await prepare?.()
    if (prepare === enterNewNamespace) execFileSync('ip', ['address', 'add', '172.30.0.1', 'dev', 'lo'])
  })
  afterEach(async () => {
    for (const backend of running.splice(0)) await backend.cleanup()
  })
  afterAll(() => end?.())

  test('serves after the first sync, follows changes, and can be asked for its state', async () => {
    const backend = await start()
    expect(backend.state).toBe('unknown')
    expect(await backend.hasRules()).toBe(false)
    const of = viewOf('10.244.1.5', '10.244.2.7')
    await backend.sync(of, fullSync)
    expect(backend.state).toBe('in step')
    expect(await held(backend)).toEqual(['10.244.1.5:8080', '10.244.2.7:8080'])
    await backend.sync(of, change(of, 'web', web('10.244.2.7')))
    expect(await held(backend)).toEqual(['10.244.2.7:8080'])
    await backend.sync(of, change(of, 'web', undefined))
    expect(await held(backend)).toEqual([])
    await backend.close()
    expect(backend.state).toBe('closed')
  })

  test('is asked for nothing before its setup and after its end', async () => {
    const backend = await make()
    await expect(backend.sync(viewOf('10.244.1.5'), fullSync)).rejects.toThrow('was not set up')
    await expect(backend.held(clusterIp)).rejects.toThrow('was not set up')
    expect(backend.features().families).toBeDefined()
    await backend.close()
    await backend.close()
  })

  test('makes a state that may be stale right when it is told everything', async () => {
    const backend = await start()
    await backend.sync(viewOf('10.244.1.5'), fullSync)
    await backend.sync(viewOf('10.244.2.7'), fullSync)
    expect(await held(backend)).toEqual(['10.244.2.7:8080'])
  })

  test.skipIf(endsWithProcess !== undefined)(
    `adopts what an earlier process left${reason(endsWithProcess)}`,
    async () => {
      const first = await start()
      await first.sync(viewOf('10.244.1.5'), fullSync)
      await first.close()
      const second = await start()
      expect(await second.hasRules()).toBe(true)
      await second.sync(viewOf('10.244.1.5'), fullSync)
      expect(await held(second)).toEqual(['10.244.1.5:8080'])
      await second.cleanup()
      const third = await start()
      expect(await third.hasRules()).toBe(false)
    },
  )

  test.skipIf(hasNoLock !== undefined)(`keeps a second process of its name away${reason(hasNoLock)}`, async () => {
    await start()
    const second = await make()
    await expect(second.setup(runner)).rejects.toThrow(/is in use on this node by kpng \(pid \d+\)/)
    await second.close()
  })
})

function reason(why: string | undefined): string {
  return why === undefined ? '' : ` (skipped: ${why})`
}
