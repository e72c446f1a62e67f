import { spawnSync } from 'node:child_process'
import { silentLog } from '@kpng/api'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { nftBackend } from './backend.js'
import { addressOf, labView, options } from './testing/cases.js'
import { Lab } from './testing/lab.js'
import { enterNamespace, whyNoKernel } from './testing/namespace.js'
import { change, fullSync } from './testing/objects.js'

// Connections by service port, counted by the kernel.

const runner = { requestFullSync: () => {} }

describe.skipIf(whyNoKernel() !== undefined)('connections that the kernel counts', () => {
  let lab: Lab
  const running: ReturnType<typeof nftBackend>[] = []

  beforeAll(async () => {
    lab = await Lab.build()
    await enterNamespace(lab.namespace('node'))
  })
  afterEach(async () => {
    for (const backend of running.splice(0)) await backend.cleanup()
  })
  afterAll(() => lab?.remove())

  async function start(writer: 'netlink' | 'nft', view: ReturnType<typeof labView>, counters = true) {
    const backend = nftBackend({ ...options, log: silentLog, writer, counters })
    running.push(backend)
    await backend.setup(runner)
    await backend.sync(view, fullSync)
    return backend
  }

  const countsOf = async (backend: ReturnType<typeof nftBackend>) => {
    const all = (await backend.connectionCounts?.()) ?? []
    return Object.fromEntries(
      all
        .filter(({ connections }) => connections > 0)
        .map(({ namespace, service, port, connections }) => [`${namespace}/${service}:${port}`, connections]),
    )
  }

  const testView = (writer: string) => {
    const view = labView()
    // nft 1.0.6 cannot make IPv6 affinity.
    if (writer === 'nft') view.services.delete('default/sticky')
    return view
  }

  test.each(['netlink', 'nft'] as const)(
    'writer %s: 5 connections are 5, whatever is sent over them',
    async (writer) => {
      const view = testView(writer)
      const backend = await start(writer, view)
      expect(await countsOf(backend)).toEqual({})
      await lab.ask('podA2', { to: addressOf('web', 'ip'), port: 80, count: 5 })
      expect(await countsOf(backend)).toEqual({ 'default/web:tcp-80': 5 })
      await lab.ask('client', { to: addressOf('web', 'ip6'), port: 80, count: 2 })
      const flow = { to: addressOf('web', 'ip'), port: 53, protocol: 'udp', flow: `counted-${writer}` }
      await lab.ask('podA2', flow)
      await lab.ask('podA2', flow)
      const expected = { 'default/web:tcp-80': 7, 'default/web:udp-53': 1 }
      expect(await countsOf(backend)).toEqual(expected)
      expect(await Promise.all([countsOf(backend), countsOf(backend)])).toEqual([expected, expected])
      // A change of endpoints leaves the counters alone, and so does a restart.
      const web = view.services.get('default/web')
      if (!web) throw new Error('The lab has no web service.')
      const fewer = { ...web.service, name: 'web', endpoints: web.endpoints.slice(0, 1) }
      await backend.sync(view, change(view, 'web', fewer))
      expect(await countsOf(backend)).toEqual(expected)
      expect(await countsOf(await start(writer, view))).toEqual(expected)
      await backend.sync(view, change(view, 'web', undefined))
      expect(await countsOf(backend)).toEqual({})
    },
  )

  test('node ports count for their service', async () => {
    const backend = await start('netlink', testView('netlink'))
    await lab.ask('client', { to: addressOf('node', 'ip'), port: 30080, count: 3 })
    expect(Object.values(await countsOf(backend))).toEqual([3])
  })

  test('off, on and off again', async () => {
    const view = testView('netlink')
    const off = await start('netlink', view, false)
    expect(off.connectionCounts).toBeUndefined()
    const on = await start('netlink', view)
    await lab.ask('podA2', { to: addressOf('web', 'ip'), port: 80 })
    expect(await countsOf(on)).toEqual({ 'default/web:tcp-80': 1 })
    await start('netlink', view, false)
    const answers = await lab.ask('podA2', { to: addressOf('web', 'ip'), port: 80, count: 3 })
    expect(answers.filter((answer) => !answer.includes(' '))).toEqual([])
  })

  test('counters that cannot be read are those from before', async () => {
    const backend = await start('netlink', testView('netlink'))
    await lab.ask('podA2', { to: addressOf('web', 'ip'), port: 80 })
    const before = await countsOf(backend)
    expect(before).toEqual({ 'default/web:tcp-80': 1 })
    spawnSync('nft', ['delete', 'table', 'ip', 'kpng'])
    expect(await countsOf(backend)).toEqual(before)
  })
})
