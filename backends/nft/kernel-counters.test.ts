import { spawnSync } from 'node:child_process'
import { silentLog } from '@kpng/api'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { change, fullSync } from '../../dataplane/testing/objects.js'
import { nftBackend } from './backend.js'
import { addressOf, labView, options } from './testing/cases.js'
import { Lab } from './testing/lab.js'
import { enterNamespace, whyNoKernel } from './testing/namespace.js'

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

  /** A restart if one runs already. */
  async function start(view: ReturnType<typeof labView>, counters = true) {
    for (const before of running) await before.close()
    const backend = nftBackend({ ...options, log: silentLog, counters })
    running.push(backend)
    await backend.setup(runner)
    await backend.sync(view, fullSync)
    return backend
  }

  const countsOf = async (backend: ReturnType<typeof nftBackend>) => {
    const all = (await backend.observations?.connections?.()) ?? []
    return Object.fromEntries(
      all
        .filter(({ connections }) => connections > 0)
        .map(({ namespace, service, port, connections }) => [`${namespace}/${service}:${port}`, connections]),
    )
  }

  test('5 connections are 5, whatever is sent over them', async () => {
    const view = labView()
    const backend = await start(view)
    expect(await countsOf(backend)).toEqual({})
    await lab.ask('podA2', { to: addressOf('web', 'ip'), port: 80, count: 5 })
    expect(await countsOf(backend)).toEqual({ 'default/web:tcp-80': 5 })
    await lab.ask('client', { to: addressOf('web', 'ip6'), port: 80, count: 2 })
    const flow = { to: addressOf('web', 'ip'), port: 53, protocol: 'udp', flow: 'counted' }
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
    const second = await start(view)
    expect(await countsOf(second)).toEqual(expected)
    await second.sync(view, change(view, 'web', undefined))
    expect(await countsOf(second)).toEqual({})
  })

  test('node ports count for their service', async () => {
    const backend = await start(labView())
    await lab.ask('client', { to: addressOf('node', 'ip'), port: 30080, count: 3 })
    expect(Object.values(await countsOf(backend))).toEqual([3])
  })

  test('off, on and off again', async () => {
    const view = labView()
    const off = await start(view, false)
    expect(off.observations?.connections).toBeUndefined()
    const on = await start(view)
    await lab.ask('podA2', { to: addressOf('web', 'ip'), port: 80 })
    expect(await countsOf(on)).toEqual({ 'default/web:tcp-80': 1 })
    await start(view, false)
    const answers = await lab.ask('podA2', { to: addressOf('web', 'ip'), port: 80, count: 3 })
    expect(answers.filter((answer) => !answer.includes(' '))).toEqual([])
  })

  test('counters that cannot be read are those from before', async () => {
    const backend = await start(labView())
    await lab.ask('podA2', { to: addressOf('web', 'ip'), port: 80 })
    const before = await countsOf(backend)
    expect(before).toEqual({ 'default/web:tcp-80': 1 })
    spawnSync('nft', ['delete', 'table', 'ip', 'kpng'])
    expect(await countsOf(backend)).toEqual(before)
  })
})
