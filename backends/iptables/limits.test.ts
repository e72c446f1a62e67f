import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Log, localv1, silentLog } from '@kpng/api'
import { whySkipped } from '@kpng/linux/testing'
import { afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { endpoint, fullSync, ips, type TestService, tcp, view } from '../../dataplane/testing/objects.js'
import { enterNewNamespace } from '../../linux/testing/index.js'
import { iptablesBackend } from './backend.js'
import type { IptablesOptions } from './options.js'

// What happens if iptables cannot do what it is told, with the programs of both flavours in a network namespace.

const whyNot = whySkipped('the limits of iptables', 'iptables-nft', 'iptables-legacy')

const run = (program: string, args: readonly string[], input = ''): string =>
  execFileSync(program, args, { input, encoding: 'utf8' })

const web: TestService = {
  name: 'web',
  ips: { clusterIps: ips('10.96.0.1') },
  endpoints: [endpoint('10.244.1.1'), endpoint('10.244.1.2')],
}
const empty: TestService = { name: 'empty', ips: { clusterIps: ips('10.96.0.3') } }

describe.skipIf(whyNot !== undefined)('limits', () => {
  let running: ReturnType<typeof iptablesBackend>[] = []
  beforeAll(enterNewNamespace)
  afterEach(async () => {
    for (const backend of running) await backend.cleanup()
    running = []
  })

  async function start(given: IptablesOptions) {
    const backend = iptablesBackend({ log: silentLog, name: 'kpng', ipv6: false, driftCheckIntervalMs: 0, ...given })
    running.push(backend)
    await backend.setup({ requestFullSync: () => {} })
    return backend
  }

  /** Runs this before iptables-restore, as a shell script: it reads the input, and what it prints goes on to iptables-restore. */
  function beforeRestore(flavour: string, script: string): void {
    const folder = mkdtempSync(join(tmpdir(), 'kpng-restore-'))
    const path = process.env.PATH ?? ''
    const name = `iptables-${flavour}-restore`
    const text = `#!/bin/sh\nset -e\ncd ${folder}\n(${script}) > input\nPATH='${path}' exec ${name} "$@" < input\n`
    writeFileSync(join(folder, name), text, { mode: 0o755 })
    process.env.PATH = `${folder}:${path}`
    onTestFinished(() => {
      process.env.PATH = path
      rmSync(folder, { recursive: true })
    })
  }

  /** Sentences with their fields. */
  const warnings: string[] = []
  const log: Log = {
    ...silentLog,
    warn: (message, fields) => void warnings.push(`${message} ${JSON.stringify(fields)}`),
  }

  test.each([
    ['-m sctp', /SCTP ports are not served.*xt_sctp/],
    ['-m nfacct', /Packets are not counted.*xt_nfacct/],
  ])('a kernel that refuses %s: everything else is served, and the log says what is not', async (refused, warning) => {
    warnings.length = 0
    // As iptables-nft says it: with the number of the line.
    const find = `line=$(grep -n -m 1 -- '${refused}' given | cut -d: -f1)`
    const fail = 'echo "line $line: RULE_APPEND failed (No such file or directory)" >&2; exit 4'
    beforeRestore('nft', `cat > given; ${find}; if [ -n "$line" ]; then ${fail}; fi; cat given`)
    const backend = await start({ flavour: 'nft', log })
    const ports = [tcp(80), tcp(81, { name: 'sctp-81', protocol: localv1.Protocol.SCTP })]
    await backend.sync(view([{ ...web, ports }]), fullSync)
    const saved = run('iptables-nft-save', [])
    expect(saved).toContain('default/web:tcp-80')
    expect(saved).not.toContain(refused)
    const other = refused === '-m sctp' ? '-m nfacct' : '-m sctp'
    expect(saved).toContain(other)
    expect(warnings).toEqual([expect.stringMatching(warning)])
    expect(backend.features?.().protocols).toEqual(refused === '-m sctp' ? ['tcp', 'udp'] : ['tcp', 'udp', 'sctp'])
  })

  test.each(['nft', 'legacy'])(
    '%s: iptables-restore fails in the middle: the error has the line, and the next sync writes everything',
    async (flavour) => {
      // Once, in the second table.
      beforeRestore(
        flavour,
        `if [ -e failed ]; then cat; else touch failed; sed '/^\\*filter/a -A KUBE-SERVICES -j NOPE --some'; fi`,
      )
      const backend = await start({ flavour: flavour as 'nft', largeClusterEndpoints: 0 })
      await expect(backend.sync(view([web, empty]), fullSync)).rejects.toThrow(
        /iptables-(nft|legacy)-restore failed at line \d+ \(.*\): .*(NOPE|some).*kpng tries again/,
      )
      expect(run(`iptables-${flavour}-save`, ['-t', 'nat'])).toContain('default/web')
      expect(run(`iptables-${flavour}-save`, ['-t', 'filter'])).not.toContain('default/empty')
      await backend.sync(view([web, empty]), fullSync)
      expect(run(`iptables-${flavour}-save`, ['-t', 'filter'])).toContain('default/empty')
    },
  )

  test('rules of others in both flavours: the warning names both', async () => {
    warnings.length = 0
    for (const program of ['iptables-nft', 'iptables-legacy']) {
      run(program, ['-A', 'INPUT', '-i', 'nothing0', '-j', 'DROP'])
      onTestFinished(() => void run(program, ['-F', 'INPUT']))
    }
    await start({ log })
    expect(warnings).toEqual([expect.stringMatching(/Both iptables-nft and iptables-legacy have rules on this node/)])
  })

  test('the lock of legacy iptables is held: a sentence says so, and the next sync works', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'kpng-xtables-'))
    const file = join(folder, 'lock')
    process.env.XTABLES_LOCKFILE = file
    const backend = await start({ flavour: 'legacy', lockWaitSeconds: 1 })
    const holder = spawn('flock', [file, 'cat'], { stdio: ['pipe', 'ignore', 'ignore'] })
    try {
      await vi.waitFor(() => expect(() => run('flock', ['-n', file, 'true'])).toThrow(), { timeout: 90_000 })
      await expect(backend.sync(view([web]), fullSync)).rejects.toThrow(/waited 1 s for the lock of iptables/)
    } finally {
      holder.stdin?.end()
      await once(holder, 'exit')
    }
    await backend.sync(view([web]), fullSync)
    expect(run('iptables-legacy-save', [])).toContain('default/web')
    delete process.env.XTABLES_LOCKFILE
    rmSync(folder, { recursive: true })
  })
})
