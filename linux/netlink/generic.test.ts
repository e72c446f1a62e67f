import { expect, test, vi } from 'vitest'
import { whySkipped } from '../testing/index.js'
import { EOPNOTSUPP } from './constants.js'
import * as dumps from './dump.js'
import { GenericNetlink } from './generic.js'
import { findAttribute, textOf } from './messages.js'

// With the family that every kernel has: the one that lists families.

const why = whySkipped('generic netlink')
const CTRL_CMD_GETFAMILY = 3
const CTRL_ATTR_FAMILY_NAME = 2

test.skipIf(why !== undefined)('finds a family by name; a family that is not there is not an error', async () => {
  const control = await GenericNetlink.open('nlctrl', 2)
  expect(control).toBeDefined()
  control?.close()
  expect(await GenericNetlink.open('kpng-nothing', 1)).toBeUndefined()
})

test.skipIf(why !== undefined)('lists objects, and reads one', async () => {
  const control = (await GenericNetlink.open('nlctrl', 2)) as GenericNetlink
  const names = await control.list({ command: CTRL_CMD_GETFAMILY }, 'families', (attributes) =>
    textOf(findAttribute(attributes, CTRL_ATTR_FAMILY_NAME) ?? Buffer.alloc(0)),
  )
  expect(names).toContain('nlctrl')
  const request = (name: string) => ({
    command: CTRL_CMD_GETFAMILY,
    write: (message: { text(type: number, value: string): void }) => message.text(CTRL_ATTR_FAMILY_NAME, name),
  })
  expect(await control.read(request('nlctrl'), 'a family')).toHaveLength(1)
  await expect(control.read(request('kpng-nothing'), 'the family kpng-nothing')).rejects.toThrow(
    'The kernel does not answer about the family kpng-nothing: ENOENT.',
  )
  control.close()
})

test.skipIf(why !== undefined)('what is refused is told by its index, and does not stop the rest', async () => {
  const control = (await GenericNetlink.open('nlctrl', 2)) as GenericNetlink
  const good = {
    command: CTRL_CMD_GETFAMILY,
    write: (message: { text(type: number, value: string): void }) => message.text(CTRL_ATTR_FAMILY_NAME, 'nlctrl'),
  }
  const bad = { command: 200 }
  const requests = Array.from({ length: 60 }, (_, index) => (index === 7 || index === 50 ? bad : good))
  expect(await control.send(requests)).toEqual([
    { index: 7, errno: EOPNOTSUPP },
    { index: 50, errno: EOPNOTSUPP },
  ])
  expect(await control.send([good])).toEqual([])
  expect(await control.send([])).toEqual([])
  control.close()
})

test.skipIf(why !== undefined)('of 1,000 requests that are all refused, no answer is lost', async () => {
  const control = (await GenericNetlink.open('nlctrl', 2)) as GenericNetlink
  const refused = await control.send(Array.from({ length: 1000 }, () => ({ command: 200 })))
  expect(refused).toHaveLength(1000)
  expect(refused.at(-1)).toEqual({ index: 999, errno: EOPNOTSUPP })
  control.close()
})

test.skipIf(why !== undefined)('a list that changed while it was read is read again', async () => {
  const control = (await GenericNetlink.open('nlctrl', 2)) as GenericNetlink
  const interrupted = vi.spyOn(dumps, 'dump').mockImplementationOnce(async () => false)
  const names = await control.list({ command: CTRL_CMD_GETFAMILY }, 'families', () => true)
  expect(names.length).toBeGreaterThan(0)
  interrupted.mockResolvedValue(false)
  await expect(control.list({ command: CTRL_CMD_GETFAMILY }, 'families', () => true)).rejects.toThrow(
    'changed each time',
  )
  interrupted.mockRestore()
  control.close()
})
