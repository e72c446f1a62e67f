import { silentLog } from '@kpng/api'
import { expect, test } from 'vitest'
import { Retirement } from './retirement.js'

const at = (ip: string, active: number, inactive: number) => ({ ip, port: 80, weight: 0, active, inactive })

function retiring(there: ReturnType<typeof at>[] | undefined) {
  const removed: string[] = []
  let now = 0
  const retirement = new Retirement({
    ...{ limitMs: 900, intervalMs: 1_000_000, log: silentLog, now: () => now },
    destinationsOf: async () => there,
    remove: async (list) => {
      for (const { key, serverKey } of list) {
        removed.push(key)
        retirement.forget(serverKey, key)
      }
    },
  })
  return {
    retirement,
    removed,
    look: async (atMs: number) => {
      now = atMs
      await retirement.look()
    },
  }
}

test('an endpoint goes when it has no connections left, and after the limit whatever it has', async () => {
  const { retirement, removed, look } = retiring([at('10.0.0.1', 0, 0), at('10.0.0.2', 1, 0), at('10.0.0.3', 0, 1)])
  for (const ip of ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.9']) retirement.add('web', `${ip}:80`)
  await look(10)
  expect(removed).toEqual(['10.0.0.1:80', '10.0.0.9:80'])
  expect(retirement.size).toBe(2)
  await look(899)
  expect(removed).toHaveLength(2)
  await look(900)
  expect(removed.slice(2)).toEqual(['10.0.0.2:80', '10.0.0.3:80'])
  await retirement.close()
})

test('one that serves again, or whose virtual server is gone, is forgotten', async () => {
  const { retirement, removed, look } = retiring(undefined)
  retirement.add('web', '10.0.0.1:80')
  retirement.add('dns', '10.0.0.2:53')
  retirement.forget('web', '10.0.0.1:80')
  expect(retirement.size).toBe(1)
  await look(10_000)
  expect([retirement.size, removed]).toEqual([0, []])
  await retirement.close()
})
