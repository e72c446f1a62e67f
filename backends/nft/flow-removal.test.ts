import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { recordingLog } from '../../core/testing/until.js'
import { DesiredState } from './desired-state.js'
import { endpointData, serviceKey } from './element.js'
import { FlowRemoval } from './flow-removal.js'
import { settingsOf } from './options.js'
import type { ListChange } from './stale-flows.js'

/** Flow removal by the `conntrack` command, which is this one. */
function removalBy(conntrackCommand: string) {
  const told: number[] = []
  const { lines, log } = recordingLog()
  const removal = new FlowRemoval({
    libc: undefined,
    state: new DesiredState(log),
    settings: settingsOf({ conntrackCommand, log }),
    onRemoved: (_family, _ms, count) => void told.push(count),
  })
  const key = serviceKey('\x0a\x60\x00\x0a', 'udp', 53)
  const change: ListChange = { family: 'ip', key, gone: endpointData('\x0a\xf4\x01\x01', 53) }
  const remove = (more: Partial<ListChange> = {}) => removal.remove([{ ...change, ...more }], [])
  return { remove, told, lines }
}

/** A `conntrack` that finds nothing, and notes that it was called. */
function findingNothing() {
  const folder = mkdtempSync(join(tmpdir(), 'kpng-flows-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const calls = join(folder, 'calls')
  const command = join(folder, 'conntrack')
  writeFileSync(calls, '')
  writeFileSync(command, `#!/bin/sh\necho "$@" >> ${calls}\necho "0 flow entries have been deleted." >&2\nexit 1\n`)
  chmodSync(command, 0o755)
  return { command, calls: () => readFileSync(calls, 'utf8').split('\n').length - 1 }
}

const aMoment = () => new Promise((resolve) => setTimeout(resolve, 1300))

test('flows of packets that were on their way are looked for once more, a moment later', async () => {
  const { command, calls } = findingNothing()
  const { remove, told } = removalBy(command)
  expect(await remove()).toBe(0)
  expect(calls()).toBe(1)
  await expect.poll(calls, { timeout: 5000 }).toBe(2)
  await aMoment()
  expect(calls()).toBe(2)
  // The second look found nothing, and is not worth a measurement.
  expect(told).toEqual([0])
})

test('what only askers from outside lost is looked for once: others may have drawn it again', async () => {
  const { command, calls } = findingNothing()
  await removalBy(command).remove({ onlyOutside: true })
  await aMoment()
  expect(calls()).toBe(1)
})

test('a look that fails is tried again, and not for ever', async () => {
  const { remove, told, lines } = removalBy('/nowhere/conntrack')
  await remove()
  await expect.poll(() => lines.length, { timeout: 9000 }).toBe(4)
  await aMoment()
  expect(lines).toEqual(Array(4).fill(expect.stringContaining('Stale UDP flows could not be deleted')))
  expect(told).toEqual([])
}, 15_000)
