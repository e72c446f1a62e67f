import { setImmediate } from 'node:timers/promises'
import { hostPort } from '@kpng/api'
import { describe, expect, test } from 'vitest'
import { frontendKeyOf } from '../layout.js'
import { MemoryMaps } from '../testing/memory-maps.js'
import { readLikeAProgram } from '../testing/reader.js'
import type { Entry } from './entry.js'
import { keyText } from './hash-table.js'
import { maglevSlots } from './maglev.js'
import { Tables } from './tables.js'

const keyOfService = (service: number) => keyText(frontendKeyOf(`10.96.0.${service}`, 80))

/** Endpoints of a service have its number in their address and a port that belongs to the address, so that a mixture is seen. */
const endpointOf = (service: number, index: number) => ({
  ip: `10.${service}.${index >> 8}.${index & 255}`,
  port: 1000 + index,
})

const entry = (service: number, indexes: readonly number[], affinitySeconds = 0): Entry => ({
  key: keyOfService(service),
  endpoints: indexes.map((index) => endpointOf(service, index)),
  affinitySeconds,
})

const texts = (service: number, indexes: readonly number[]) =>
  indexes.map((index) => endpointOf(service, index)).map(({ ip, port }) => hostPort(ip, port))

const loaded = async (maps: MemoryMaps, entries: readonly Entry[], balancing: 'random' | 'maglev' = 'random') => {
  const tables = new Tables(maps, { balancing })
  const written = await tables.load(new Map(entries.map((each) => [each.key, each])))
  return { tables, written }
}

/** Every endpoint that a program could choose. */
function choices(maps: MemoryMaps, service: number): Set<string | undefined> {
  const found = new Set<string | undefined>()
  for (let random = 0; random < maglevSlots; random++) {
    const reading = readLikeAProgram(maps, keyOfService(service), random)
    let step = reading.next()
    while (!step.done) step = reading.next()
    found.add(step.value)
  }
  return found
}

describe('the tables', () => {
  test('hold what they were given; IPv6 too', async () => {
    const maps = new MemoryMaps()
    const ipv6: Entry = {
      key: keyText(frontendKeyOf('fd00:96::1', 443)),
      endpoints: [{ ip: 'fd00:1::2', port: 8443 }],
      affinitySeconds: 30,
    }
    const { tables, written } = await loaded(maps, [entry(1, [1, 2, 3]), entry(2, [7]), ipv6])
    expect(written).toBe(3)
    expect(choices(maps, 1)).toEqual(new Set(texts(1, [1, 2, 3])))
    expect(choices(maps, 2)).toEqual(new Set(texts(2, [7])))
    expect(tables.read(ipv6.key)?.endpoints).toEqual(['[fd00:1::2]:8443'])
    expect(tables.size).toBe(3)
  })

  test('a change replaces a run; a removed frontend is left to nftables at once', async () => {
    const maps = new MemoryMaps()
    const { tables } = await loaded(maps, [entry(1, [1, 2, 3])])
    await tables.change([[keyOfService(1), entry(1, [2, 9])]])
    expect(choices(maps, 1)).toEqual(new Set(texts(1, [2, 9])))
    await tables.change([[keyOfService(1), undefined]])
    expect(choices(maps, 1)).toEqual(new Set([undefined]))
    expect(tables.size).toBe(0)
    await tables.change([[keyOfService(1), entry(1, [4])]])
    expect(choices(maps, 1)).toEqual(new Set(texts(1, [4])))
  })

  test('what was freed is used again only after a grace period', async () => {
    const maps = new MemoryMaps({ frontends: 8, slots: 16, endpoints: 8, clients: 16 })
    const { tables } = await loaded(maps, [entry(1, [1, 2])])
    maps.graceIsManual = true
    await tables.change([[keyOfService(1), entry(1, [3, 4])]])
    // A program that began before the change still reads what it has begun with.
    const before = Buffer.from(maps.endpoints).toString('hex')
    // Two more endpoints and a run of two would fit only into what rests.
    const waiting = tables.change([[keyOfService(2), entry(2, [5, 6, 7, 8])]])
    await setImmediate()
    expect(
      Buffer.from(maps.endpoints)
        .toString('hex')
        .slice(0, 48 * 5),
    ).toBe(before.slice(0, 48 * 5))
    expect(tables.read(keyOfService(2))).toBeUndefined()
    maps.graceIsManual = false
    maps.endGrace()
    await waiting
    expect(choices(maps, 2)).toEqual(new Set(texts(2, [5, 6, 7, 8])))
  })

  test('after a delete, nothing is added before a grace period is over', async () => {
    const maps = new MemoryMaps()
    const { tables } = await loaded(maps, [entry(1, [1])])
    maps.graceIsManual = true
    await tables.change([[keyOfService(1), undefined]])
    const adding = tables.change([[keyOfService(2), entry(2, [1])]])
    await setImmediate()
    expect(maps.frontends.values.size).toBe(0)
    maps.graceIsManual = false
    maps.endGrace()
    await adding
    expect(maps.frontends.values.size).toBe(1)
  })

  test('a map that is full leaves a frontend out, others go on, and room is used when it comes', async () => {
    const maps = new MemoryMaps({ frontends: 8, slots: 64, endpoints: 8, clients: 16 })
    const { tables } = await loaded(maps, [entry(1, [1, 2, 3]), entry(2, [1, 2, 3, 4, 5]), entry(3, [1, 2])])
    expect(tables.leftOut).toEqual(new Map([['endpoints', 1]]))
    expect(choices(maps, 1)).toEqual(new Set(texts(1, [1, 2, 3])))
    expect(choices(maps, 2)).toEqual(new Set([undefined]))
    expect(choices(maps, 3)).toEqual(new Set(texts(3, [1, 2])))
    await tables.change([[keyOfService(1), undefined]])
    expect(tables.leftOut.size).toBe(0)
    expect(choices(maps, 2)).toEqual(new Set(texts(2, [1, 2, 3, 4, 5])))
  })

  test('a frontend that outgrows the maps keeps no old endpoint', async () => {
    const maps = new MemoryMaps({ frontends: 8, slots: 64, endpoints: 8, clients: 16 })
    const { tables } = await loaded(maps, [entry(1, [1, 2, 3])])
    await tables.change([[keyOfService(1), entry(1, [4, 5, 6, 7, 8, 9, 10, 11, 12])]])
    expect(choices(maps, 1)).toEqual(new Set([undefined]))
    expect(tables.leftOut).toEqual(new Map([['endpoints', 1]]))
  })

  test('a restart adopts what is there, and writes only what differs', async () => {
    const maps = new MemoryMaps()
    await loaded(maps, [entry(1, [1, 2]), entry(2, [3]), entry(3, [4], 60)])
    const { written } = await loaded(maps, [entry(1, [2, 1]), entry(2, [3]), entry(3, [4], 60)])
    expect(written).toBe(0)
    const again = await loaded(maps, [entry(1, [2]), entry(3, [4], 90), entry(4, [1])])
    expect(again.written).toBe(4)
    expect(choices(maps, 1)).toEqual(new Set(texts(1, [2])))
    expect(choices(maps, 2)).toEqual(new Set([undefined]))
    expect(choices(maps, 4)).toEqual(new Set(texts(4, [1])))
  })

  test('Maglev is adopted too, and a change of the way of balancing is written', async () => {
    const maps = new MemoryMaps({ frontends: 8, slots: 8192, endpoints: 64, clients: 16 })
    await loaded(maps, [entry(1, [1, 2, 3])], 'maglev')
    expect((await loaded(maps, [entry(1, [3, 2, 1])], 'maglev')).written).toBe(0)
    expect((await loaded(maps, [entry(1, [1, 2, 3])], 'random')).written).toBe(1)
  })

  test.each([
    ['an endpoint', (maps: MemoryMaps) => new Uint8Array(maps.endpoints).fill(9, 24, 40)],
    ['a slot', (maps: MemoryMaps) => new Uint32Array(maps.slots).fill(99)],
    ['a run', (maps: MemoryMaps) => new Uint32Array(maps.sets).fill(0x7fffffff, 6, 8)],
    ['a frontend', (maps: MemoryMaps) => maps.frontends.values.set(keyOfService(1), Buffer.from([9, 0, 0, 0]))],
    [
      'a frontend too much',
      (maps: MemoryMaps) => maps.frontends.values.set(keyOfService(9), Buffer.from([1, 0, 0, 0])),
    ],
    ['a frontend too few', (maps: MemoryMaps) => maps.frontends.values.delete(keyOfService(2))],
  ])('%s that somebody changed is noticed and repaired', async (_what, damage) => {
    const maps = new MemoryMaps()
    const wanted = [entry(1, [1, 2]), entry(2, [3])]
    const { tables } = await loaded(maps, wanted)
    expect([tables.drift(100), tables.drift(1), tables.drift(1), tables.drift(1)]).toEqual(Array(4).fill(undefined))
    damage(maps)
    expect(tables.drift(100)).toContain('another program')
    await tables.load(new Map(wanted.map((each) => [each.key, each])))
    expect(tables.drift(100)).toBeUndefined()
    expect(choices(maps, 1)).toEqual(new Set(texts(1, [1, 2])))
    expect(choices(maps, 2)).toEqual(new Set(texts(2, [3])))
    expect(choices(maps, 9)).toEqual(new Set([undefined]))
  })

  test("the node's addresses are those that were given", async () => {
    const maps = new MemoryMaps()
    const { tables } = await loaded(maps, [])
    const values = () => [...maps.nodeAddresses.values].map(([key, value]) => [key, value.readUInt32LE()])
    await tables.setNodeAddresses(new Map([['a'.repeat(16), 0], ['b'.repeat(16), 1]])) // biome-ignore format: short
    await tables.setNodeAddresses(new Map([['b'.repeat(16), 0], ['c'.repeat(16), 1]])) // biome-ignore format: short
    expect(values()).toEqual([['b'.repeat(16), 0], ['c'.repeat(16), 1]]) // biome-ignore format: short
  })
})

test('whatever changes while programs read, each gets an endpoint that its Service had meanwhile', async () => {
  const random = (below: number) => Math.floor(Math.random() * below)
  const maps = new MemoryMaps({ frontends: 8, slots: 256, endpoints: 128, clients: 16 })
  const { tables } = await loaded(maps, [entry(1, [1]), entry(2, [1])])
  maps.graceIsManual = true
  const had = new Map(
    [1, 2, 3].map((service) => [service, new Set<string | undefined>([undefined, ...texts(service, [1])])]),
  )
  let reads = 0
  for (let round = 0; round < 400; round++) {
    // Program runs that are under way now, each stopped at some step.
    const runs = Array.from({ length: 6 }, () => {
      const service = 1 + random(3)
      const reading = readLikeAProgram(maps, keyOfService(service), random(1000))
      let step = reading.next()
      for (let steps = random(4); steps > 0 && !step.done; steps--) step = reading.next()
      return { service, reading, step }
    })
    const changing = Array.from({ length: 3 }, () => {
      const service = 1 + random(3)
      const indexes = Array.from({ length: random(7) }, () => random(4000))
      for (const text of texts(service, indexes)) had.get(service)?.add(text)
      const wanted = indexes.length === 0 ? undefined : entry(service, [...new Set(indexes)])
      return tables.change([[keyOfService(service), wanted]])
    })
    await setImmediate()
    for (const { service, reading, step } of runs) {
      let last = step
      while (!last.done) last = reading.next()
      expect(had.get(service)).toContain(last.value)
      reads++
    }
    // A grace period ends only when those runs have ended.
    let isOver = false
    const all = Promise.all(changing).then(() => {
      isOver = true
    })
    while (!isOver) {
      maps.endGrace()
      await setImmediate()
    }
    await all
  }
  expect(reads).toBe(2400)
})
