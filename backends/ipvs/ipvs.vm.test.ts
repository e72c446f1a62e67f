import { spawnSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { whySkipped } from '@kpng/linux/testing'
import { expect, test } from 'vitest'
import { bundle, programPath } from '../../linux/testing/bundle.js'
import { checkTraffic } from './testing/traffic-check.js'

// Where the kernel has IPVS. On a kernel without it, run this file in a VM.

const why =
  whySkipped('the IPVS backend on the kernel', 'nft') ??
  (spawnSync('modprobe', ['ip_vs']).status === 0 || existsSync('/proc/net/ip_vs')
    ? undefined
    : 'this kernel has no IPVS (module ip_vs)')
if (why !== undefined) console.warn(`SKIPPED: the IPVS backend on the kernel: ${why}`)

test.skipIf(why !== undefined)('the IPVS backend on the kernel', { timeout: 180_000 }, async () => {
  const program = programPath('ipvs-kernel-check')
  try {
    await bundle(new URL('testing/kernel-check.ts', import.meta.url), program)
    const { status, stdout } = spawnSync('unshare', ['--net', process.execPath, program], { encoding: 'utf8' })
    expect({ status, failures: stdout.split('\n').filter((line) => line.startsWith('not ok')) }).toEqual({
      status: 0,
      failures: [],
    })
  } finally {
    rmSync(program, { force: true })
  }
})

test.skipIf(why !== undefined)('packets, restarts and churn', { timeout: 180_000 }, async () => {
  const program = programPath('ipvs-proxy')
  try {
    await bundle(new URL('testing/proxy.ts', import.meta.url), program)
    const { wrong, failed } = await checkTraffic(program, 200)
    expect({ wrong, failed }).toEqual({ wrong: [], failed: [] })
  } finally {
    rmSync(program, { force: true })
  }
})
