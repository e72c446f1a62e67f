import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KpngError } from '@kpng/api'
import { BpfError } from '@kpng/linux/bpf'
import { expect, test } from 'vitest'
import { explained, findCgroup } from './requirements.js'

test('what the kernel refuses says what to do', () => {
  const refused = explained(new BpfError('make the map frontends', 'EPERM'))
  expect(refused).toBeInstanceOf(KpngError)
  expect(String(refused)).toMatch(
    /^KpngError: The kernel refuses to make the map frontends: EPERM\. eBPF needs CAP_BPF and CAP_NET_ADMIN \(or CAP_SYS_ADMIN\), and kpng has .*Or use to-nft\.$/,
  )
  const old = explained(
    new BpfError('load the program connect4', 'EINVAL', { said: 'unknown func bpf_ktime_get_coarse_ns#160' }),
  )
  expect(String(old)).toMatch(
    /It says:\nunknown func bpf_ktime_get_coarse_ns#160 The kernel is .* needs 5\.14 or newer/,
  )
  const other = new Error('something else')
  expect(explained(other)).toBe(other)
})

test('a folder that is not a cgroup is refused', () => {
  expect(() => findCgroup('/nowhere')).toThrow('/nowhere is not a cgroup of version 2.')
})

test('of a hybrid hierarchy, the part of version 2 is named', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kpng-cgroup-'))
  try {
    mkdirSync(join(folder, 'unified'))
    for (const name of ['cgroup.procs', 'cgroup.controllers']) writeFileSync(join(folder, 'unified', name), '')
    expect(() => findCgroup(folder)).toThrow(`${folder} is not a cgroup of version 2. Give ${folder}/unified.`)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
