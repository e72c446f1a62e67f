import { spawnSync } from 'node:child_process'
import { beforeAll, describe, expect, test } from 'vitest'
import { DummyInterface, removeDummyInterface } from './dummy-interface.js'
import { enterNewNamespace, whySkipped } from './testing/index.js'

const ip = (...args: string[]) => spawnSync('ip', args, { encoding: 'utf8' })

const name = 'kpng-dummy-test'
const why = whySkipped('dummy interfaces', 'ip')

describe.skipIf(why !== undefined)('in a network namespace', () => {
  beforeAll(enterNewNamespace)

  test('holds addresses of both families; adding and removing twice is no failure. Without the module, the error names it', async () => {
    const opened = await DummyInterface.open(name).catch((error: Error) => error)
    if (opened instanceof Error) {
      console.warn(`SKIPPED: dummy interfaces: ${opened.message}`)
      expect(opened.message).toMatch(/Load the module dummy/)
      return
    }
    const many = Array.from({ length: 600 }, (_, index) => `10.96.${index >> 8}.${index & 255}`)
    await opened.change([...many, 'fd00:96::1'], [])
    await opened.change(['10.96.0.1'], ['10.96.0.0', '10.96.200.1'])
    const held = await opened.addresses()
    expect([held.size, held.has('fd00:96::1'), held.has('10.96.0.0')]).toEqual([600, true, false])
    expect(ip('-br', 'link', 'show', name).stdout).toMatch(/ DOWN /)
    expect(ip('route', 'get', '10.96.0.1').stdout).toMatch(/^local /)
    expect(await opened.ensure()).toBe(false)
    ip('link', 'delete', name)
    expect(await opened.ensure()).toBe(true)
    expect((await opened.addresses()).size).toBe(0)
    opened.close()
    expect(await removeDummyInterface(name)).toBe(true)
    expect(await removeDummyInterface(name)).toBe(false)
  })

  test('an interface of another kind is left alone', async () => {
    ip('link', 'add', 'kpng-veth', 'type', 'veth', 'peer', 'name', 'kpng-veth1')
    await expect(DummyInterface.open('kpng-veth')).rejects.toThrow(/not of kind dummy, but veth/)
    expect(await removeDummyInterface('kpng-veth')).toBe(false)
  })
})
