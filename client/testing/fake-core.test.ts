import { afterEach, describe, expect, test } from 'vitest'
import type { Backend, Changes, NodeView, Runner } from '../backend.js'
import { hasEndpoints } from '../ports.js'
import { endpoint, FakeCore, ips, tcp } from './index.js'

const cores: FakeCore[] = []
afterEach(async () => {
  for (const core of cores.splice(0)) await core.stop()
})

/** A backend whose data plane is a list of sentences. */
function start(fail: { setup?: Error; sync?: Error } = {}) {
  const calls: string[] = []
  let runner: Runner | undefined
  let view: NodeView | undefined
  const backend: Backend = {
    setup: async (given) => {
      runner = given
      if (fail.setup) throw fail.setup
    },
    sync: async (given, { full, services }: Changes) => {
      view = given
      calls.push(`${full ? 'full' : 'part'}: ${[...services.keys()].join(' ')}`)
      if (fail.sync) throw fail.sync
    },
    cleanup: async () => {},
    close: async () => void calls.push('closed'),
  }
  const core = new FakeCore(backend)
  if (!fail.setup) cores.push(core)
  return { core, calls, runner: () => runner as Runner, view: () => view as NodeView }
}

const web = { name: 'web', ips: { clusterIps: ips('10.96.0.1') }, endpoints: [endpoint('10.244.1.5')] }

describe('FakeCore', () => {
  test('sends everything first, then what changed, and nothing twice', async () => {
    const { core, calls } = start()
    expect(await core.set(web, { name: 'dns' }).sync()).toMatchObject({ full: true })
    expect(await core.set({ ...web, endpoints: [endpoint('10.244.1.6')] }).sync()).toMatchObject({ full: false })
    expect(await core.sync()).toBeUndefined()
    expect(await core.reconnect().sync()).toBeUndefined()
    await core.delete('dns').reconnect().sync()
    expect(calls).toEqual(['full: default/web default/dns', 'part: default/web', 'part: default/dns'])
  })

  test('an empty cluster is a state too', async () => {
    const { core, calls } = start()
    await core.sync()
    expect(calls).toEqual(['full: '])
  })

  test('gives before and after, and the view as it is now', async () => {
    const { core, view } = start()
    await core
      .set(web)
      .setNode({ labels: { zone: 'a' } })
      .setServiceCidrs('10.96.0.0/16')
      .sync()
    const changes = await core.set({ ...web, endpoints: [] }).sync()
    const change = changes?.services.get('default/web')
    expect([change?.before?.endpoints.length, change?.after?.endpoints.length]).toEqual([1, 0])
    expect(view().services.get('default/web')).toBe(change?.after)
    expect(view()).toMatchObject({ nodeName: 'node-a', node: { name: 'node-a', labels: { zone: 'a' } } })
    expect(view().serviceCidrs.get('kubernetes')?.cidrs).toEqual(['10.96.0.0/16'])
  })

  test('says in which families a port is served, as a core does', async () => {
    const { core, view } = start()
    await core.set({ ...web, ports: [tcp(80), tcp(81, { servedFamilies: { v6: true } })] }).sync()
    const item = view().services.get('default/web')
    if (!item) throw new Error('no Service')
    const flags = item.service.ports.map((port) => [hasEndpoints(item, port, 'IPv4'), hasEndpoints(item, port, 'IPv6')])
    expect(flags).toEqual([
      [true, false],
      [false, true],
    ])
  })

  test('an error of sync is the test’s, and the next sync has the whole view', async () => {
    const fail: { sync?: Error } = { sync: new Error('no disk') }
    const { core, calls } = start(fail)
    await expect(core.set(web).sync()).rejects.toThrow('no disk')
    await expect(core.sync()).rejects.toThrow('no disk')
    delete fail.sync
    await core.set({ name: 'dns' }).sync()
    expect(calls).toEqual(['full: default/web', 'full: default/web', 'full: default/web default/dns'])
    expect(core.syncs.map((sync) => 'error' in sync)).toEqual([true, true, false])
  })

  test('a full sync that the backend asks for happens with the next sync', async () => {
    const { core, calls, runner } = start()
    await core.set(web).sync()
    runner().requestFullSync('somebody changed the rules')
    expect(await core.sync()).toMatchObject({ full: true })
    expect(calls).toEqual(['full: default/web', 'full: '])
  })

  test('an error of setup is the test’s too', async () => {
    const { core, calls } = start({ setup: new Error('nginx is missing') })
    await expect(core.sync()).rejects.toThrow('nginx is missing')
    await core.stop()
    expect(calls).toEqual(['closed'])
    await expect(core.sync()).rejects.toThrow('has ended')
  })

  test('a Service that is not there cannot be deleted', () => {
    expect(() => start().core.delete('web')).toThrow('There is no Service default/web to delete.')
  })
})
