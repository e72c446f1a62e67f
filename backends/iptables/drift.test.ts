import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '@kpng/api'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ChainDrift } from './drift.js'
import { settingsOf } from './options.js'
import { RuleState } from './rule-state.js'
import { emptyRules } from './testing/fake-iptables.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kpng-drift-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('what differs right after everything was written is named once, and no longer counts', async () => {
  const program = join(folder, 'iptables')
  // It never shows the jumps that were written.
  writeFileSync(`${program}-save`, `#!/bin/sh\nprintf '${emptyRules.replaceAll('\n', '\\n')}'\n`, { mode: 0o755 })
  const settings = settingsOf()
  const rules = { ...settings, detectLocal: settings.dataplane.detectLocal, randomFully: true, counters: false }
  const warnings: unknown[] = []
  const drift = new ChainDrift({
    programs: { IPv4: program, IPv6: program },
    states: new Map([['IPv4', new RuleState('IPv4', rules)]]),
    names: settings.names,
    log: { ...silentLog, warn: (_, details) => void warnings.push(details) },
  })
  await drift.afterFullSync()
  expect(warnings).toEqual([])
  const reason = await drift.look()
  expect(reason).toMatch(/^the jump from \w+ to KUBE-.* is gone$/)
  await drift.afterFullSync()
  expect(warnings).toEqual([{ program, reason }])
  expect(await drift.look()).toBeUndefined()
})
