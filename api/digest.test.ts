import { expect, test } from 'vitest'
import { bucketCountFor, Digest, digestBytes, itemHash, placeOf } from './index.js'

const hashes = ['one', 'two', 'three'].map((text) => itemHash(Buffer.from(text)))

test('a digest does not depend on the order, and what is removed leaves no trace', () => {
  const [one, other] = [new Digest(), new Digest()]
  for (const hash of hashes) one.add(hash)
  for (const hash of hashes.toReversed()) other.add(hash)
  expect(one.toBytes()).toEqual(other.toBytes())
  other.add(12345)
  expect(one.toBytes()).not.toEqual(other.toBytes())
  other.remove(12345)
  expect(one.toBytes()).toEqual(other.toBytes())
  expect(one.toBytes()).toHaveLength(digestBytes)
})

test('buckets that differ are found', () => {
  const [one, other] = [new Digest(16), new Digest(16)]
  for (const [index, hash] of hashes.entries()) one.add(hash, 3 + 16 * index)
  for (const hash of hashes) other.add(hash, 3)
  expect(one.differencesTo(other.toBytes())).toEqual(new Set())
  other.add(99, 21)
  other.remove(hashes[0] as number, 3)
  expect(one.differencesTo(other.toBytes())).toEqual(new Set([3, 5]))
  expect(one.differencesTo(new Digest(8).toBytes())).toBeUndefined()
})

test('a copy is changed alone', () => {
  const one = new Digest(4)
  one.add(7, 1)
  const copy = new Digest(4)
  copy.add(9, 3)
  copy.set(one)
  copy.add(8, 2)
  expect(one.differencesTo(copy.toBytes())).toEqual(new Set([2]))
})

test('hashes have 53 bits, and one changed byte changes both lanes', () => {
  const high = new Set<number>()
  const low = new Set<number>()
  for (let byte = 0; byte < 256; byte++) {
    const hash = itemHash(Uint8Array.of(1, 2, byte, 4))
    expect(Number.isSafeInteger(hash)).toBe(true)
    high.add(Math.floor(hash / 2 ** 32))
    low.add(hash % 2 ** 32)
  }
  expect([high.size, low.size]).toEqual([256, 256])
})

test('the values are those of the contract: clients of other makes must find the same', () => {
  expect(itemHash(Buffer.from('0a00', 'hex'))).toBe(5_054_994_840_149_046)
  expect(placeOf('default/web')).toBe(1_104_546_326)
  // UTF-8, not UTF-16.
  expect(placeOf('é')).toBe(513_660_410)
})

test('buckets hold few items, and their digests fit into half of a request', () => {
  expect([0, 100, 1000, 55_000, 10_000_000].map(bucketCountFor)).toEqual([16, 16, 64, 4096, 4096])
  expect(4096 * digestBytes).toBeLessThanOrEqual(32 * 1024)
})
