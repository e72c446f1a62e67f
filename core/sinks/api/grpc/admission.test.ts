import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Admission } from './admission.js'
import { FrameType, RawHttp2 } from './testing/raw-http2.js'
import { startServer } from './testing/server.js'

/** Stands for a connection: whether its first bytes were read, and whether it is gone. */
class Connection {
  bytesRead = 0
  destroyed = false

  destroy(): void {
    this.destroyed = true
  }
}

function admission() {
  const admitted: Connection[] = []
  const clock = { nowMs: 0 }
  const admit = (socket: Socket) => void admitted.push(socket as unknown as Connection)
  const admission = new Admission({ admit, nowMs: () => clock.nowMs })
  const come = (count: number) => {
    const connections = Array.from({ length: count }, () => new Connection())
    for (const connection of connections) admission.add(connection as unknown as Socket)
    return connections
  }
  return { admission, admitted, clock, come }
}

const until = (admitted: readonly Connection[], count: number) =>
  expect.poll(() => admitted.length, { timeout: 90_000 }).toBe(count)

test('of many connections 32 are worked on at a time, in the order in which they came', async () => {
  const { admitted, come } = admission()
  const all = come(100)
  await until(admitted, 32)
  for (const connection of admitted.slice(0, 10)) connection.bytesRead = 100
  await until(admitted, 42)
  for (const connection of all) connection.bytesRead = 100
  await until(admitted, 100)
  expect(admitted).toEqual(all)
})

test('clients that say nothing, and those that have gone, keep nobody waiting', async () => {
  const { admitted, clock, come } = admission()
  const silent = come(32)
  const others = come(2)
  await until(admitted, 32)
  clock.nowMs = 49
  silent[0]?.destroy()
  await until(admitted, 33)
  expect(admitted.at(-1)).toBe(others[0])
  clock.nowMs = 50
  await until(admitted, 34)
})

test('nobody is let in while more come, but not for longer than 10 ms', async () => {
  const { admitted, clock, come } = admission()
  const [first] = come(1)
  for (let turns = 0; turns < 20; turns++) {
    await nextTurn()
    come(1)
  }
  expect(admitted).toHaveLength(0)
  clock.nowMs = 10
  await until(admitted, 21)
  expect(admitted[0]).toBe(first)
})

test('those that wait are closed with the server', async () => {
  const { admission: closing, admitted, come } = admission()
  const all = come(40)
  await until(admitted, 32)
  closing.close()
  expect(all.filter(({ destroyed }) => destroyed)).toEqual(all.slice(32))
})

test('all of many clients that connect at once are answered, also beside silent ones', async () => {
  const server = await startServer({ '/t/Answer': async () => {} })
  for (let index = 0; index < 40; index++) new RawHttp2(server.port)
  const clients = Array.from({ length: 100 }, () => new RawHttp2(server.port).begin().startCall(1, '/t/Answer'))
  const isAnswered = (client: RawHttp2) => client.has(FrameType.HEADERS, 1)
  await expect.poll(() => clients.every(isAnswered), { timeout: 90_000 }).toBe(true)
  expect(server.stats.connections).toBe(140)
})
