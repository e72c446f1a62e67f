import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
// @ts-expect-error: plain JavaScript, as all scripts are
import { windowsNode } from '../../scripts/testing/windows-node.js'
import { bundle } from './testing/remote.js'

// On Windows with the Node that runs the tests; elsewhere under wine, with a Node for Windows that wine can run.

let node = process.execPath

function missing(): string | undefined {
  if (process.platform === 'win32') return undefined
  try {
    execFileSync('wine', ['--version'], { stdio: 'ignore' })
  } catch {
    return 'wine is not installed'
  }
  try {
    node = windowsNode()
  } catch (error) {
    return `Node for Windows cannot be had: ${(error as Error).message}`
  }
  return undefined
}

const why = missing()
if (why !== undefined) console.warn(`SKIPPED: the userspace backend on Windows: ${why}`)

describe.skipIf(why !== undefined)('the userspace backend on Windows', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kpng-windows-'))
  const env = { ...process.env, WINEPREFIX: join(folder, 'wine'), WINEDEBUG: '-all' }
  afterAll(() => {
    // wine leaves its services running; those of this prefix go, and nobody else's.
    if (process.platform !== 'win32')
      spawnSync('wine', ['wineboot', '--end-session', '--kill'], { env, stdio: 'ignore' })
    rmSync(folder, { recursive: true, force: true })
  })

  it('proxies TCP and UDP on added addresses and node ports', { timeout: 300_000 }, async () => {
    await bundle('windows-run.ts', join(folder, 'run.mjs'))
    const onWindows = process.platform === 'win32'
    const [command = '', ...args] = [...(onWindows ? [] : ['wine']), node, 'run.mjs', 'result.json']
    // Node refuses to run on the Windows version that wine claims to be at first.
    if (!onWindows) spawnSync('wine', ['winecfg', '-v', 'win10'], { env, stdio: 'ignore' })
    // Under wine Node's output must go to a file: a pipe fails with EBADF.
    const output = join(folder, 'output')
    const file = openSync(output, 'w')
    const { status } = spawnSync(command, args, { cwd: folder, env, stdio: ['ignore', file, file], timeout: 90_000 })
    expect([status, readFileSync(output, 'utf8')]).toEqual([0, ''])
    expect(JSON.parse(readFileSync(join(folder, 'result.json'), 'utf8'))).toEqual({
      platform: 'win32',
      clusterIp: 'pod',
      nodePort: 'pod',
      echoed: true,
      udp: 'dns:q',
      noEndpoints: 'ECONNREFUSED',
      calls: [
        'netsh interface ipv4 add address name=vEthernet (HNS Internal NIC) address=127.0.0.2 mask=255.255.255.255',
        'netsh interface ipv4 delete address name=vEthernet (HNS Internal NIC) address=127.0.0.2',
      ],
    })
  })
})
