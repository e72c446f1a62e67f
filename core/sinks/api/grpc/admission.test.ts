import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Admission } from './admission.js'
import { FrameType, RawHttp2 } from './testing/raw-http2.js'
import { startServer } from './testing/server.js'

/** Stands for a connection. */
class Connection {
  destroyed = false

  destroy(): void {
    this.destroyed = true
  }
}

function admission({ eachTakesMs = 0 } = {}) {
  const admitted: Connection[] = []
  const clock = { nowMs: 0 }
  const admit = (socket: Socket) => {
    admitted.push(socket as unknown as Connection)
    clock.nowMs += eachTakesMs
  }
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

test('of many connections 32 are let in per turn, in the order in which they came, without those that have gone', async () => {
  const { admitted, clock, come } = admission()
  const all = come(100)
  all[40]?.destroy()
  clock.nowMs = 10
  const perTurn: number[] = []
  while (admitted.length < 99) {
    const before = admitted.length
    await nextTurn()
    perTurn.push(admitted.length - before)
  }
  expect(perTurn.filter((count) => count > 0)).toEqual([32, 31, 32, 4])
  expect(admitted).toEqual(all.filter(({ destroyed }) => !destroyed))
})

test('when 10 ms are over, the next ones are let in in the next turn', async () => {
  const { admitted, clock, come } = admission({ eachTakesMs: 4 })
  come(7)
  clock.nowMs = 10
  const perTurn: number[] = []
  while (admitted.length < 7) {
    const before = admitted.length
    await nextTurn()
    perTurn.push(admitted.length - before)
  }
  expect(perTurn.filter((count) => count > 0)).toEqual([3, 3, 1])
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
  while (admitted.length === 0) await nextTurn()
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
