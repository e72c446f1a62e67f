import { closeSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { whySkipped } from '../lab/requirements.js'
import { cgroupTree } from './cgroups.js'
import { BpfMap, type MapShape, socketStorageTypes } from './maps.js'
import { isBpffs } from './pins.js'
import { loadProgram } from './programs.js'
import { BpfError, type BpfSyscalls, loadBpf } from './syscalls.js'

test('the tree of cgroups is found among the mounts; one that is whole comes first', () => {
  const mounts = [
    '31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755',
    '41 31 0:38 / /nowhere/unified rw,relatime - cgroup2 cgroup2 rw',
  ]
  expect(cgroupTree(mounts.join('\n'))).toEqual({ path: '/nowhere/unified', isWhole: false })
  expect(cgroupTree(mounts[0])).toBeUndefined()
})

test('a folder is in a bpf file system, or is not', () => {
  expect(isBpffs('/proc')).toBe(false)
  expect(isBpffs('/nowhere')).toBe(false)
})

describe.skipIf(whySkipped('bpf(2)') !== undefined)('the kernel', () => {
  let sys: BpfSyscalls
  const open: BpfMap[] = []
  const hash: MapShape = { type: 'hash', keyBytes: 4, valueBytes: 4, maxEntries: 8 }
  const word = (value: number) => Buffer.from(Uint32Array.of(value).buffer)
  const make = (shape: MapShape) => {
    const map = BpfMap.create(sys, 'test', shape)
    open.push(map)
    return map
  }
  beforeAll(async () => {
    sys = await loadBpf()
  })
  afterAll(() => {
    for (const map of open) map.close()
  })

  test('keeps what is written to a hash map, one by one and many at once', () => {
    const map = make(hash)
    map.set(word(1), word(11))
    expect(map.lookup(word(1))).toEqual(word(11))
    map.set(word(1), word(13))
    expect(map.setMany(Buffer.concat([2, 3, 4].map(word)), Buffer.concat([22, 33, 44].map(word)))).toBe(3)
    expect([map.delete(word(2)), map.delete(word(2)), map.lookup(word(2))]).toEqual([true, false, undefined])
    const entries = [...map.entries(2)].map(([key, value]) => [key.readUInt32LE(), value.readUInt32LE()])
    expect(new Map(entries as [number, number][])).toEqual(
      new Map([
        [1, 13],
        [3, 33],
        [4, 44],
      ]),
    )
    const many = Array.from({ length: 20 }, (_, index) => word(index + 100))
    expect(map.setMany(Buffer.concat(many), Buffer.concat(many))).toBe(5)
  })

  test('tells shapes apart', () => {
    const map = make(hash)
    expect(map.hasItsShape()).toBe(true)
    for (const other of [{ maxEntries: 16 }, { valueBytes: 8 }, { type: 'lruHash' as const }]) {
      expect(new BpfMap(sys, map.fd, 'test', { ...hash, ...other }).hasItsShape()).toBe(false)
    }
  })

  test('maps the memory of an array into this process', () => {
    const map = make({ type: 'array', keyBytes: 4, valueBytes: 8, maxEntries: 4 })
    const memory = new BigUint64Array(map.memory())
    Atomics.store(memory, 2, 77n)
    expect(map.lookup(word(2))?.readBigUInt64LE()).toBe(77n)
    map.set(word(3), Buffer.from(BigUint64Array.of(88n).buffer))
    expect(memory[3]).toBe(88n)
  })

  test('takes maps that are beside sockets, names the namespace, and ends grace periods', async () => {
    const types = socketStorageTypes(sys, 40)
    open.push(BpfMap.create(sys, 'peers', { type: 'socketStorage', keyBytes: 4, valueBytes: 40, maxEntries: 0 }, types))
    closeSync(types)
    expect(sys.networkNamespaceCookie()).toBe(sys.networkNamespaceCookie())
    await sys.gracePeriod()
  })

  test('says why it refuses a program', () => {
    // r0 is returned, and nothing was written to it.
    const exit = Buffer.from('9500000000000000', 'hex')
    try {
      closeSync(loadProgram(sys, 'connect4', exit))
      expect.unreachable()
    } catch (error) {
      expect(error).toBeInstanceOf(BpfError)
      expect((error as BpfError).message).toMatch(/refuses to load the program connect4: EACCES\. It says:\n.*R0/s)
    }
  })
})
