import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import '../cli/testing/compiled.js'
import { whySkipped } from '../linux/testing/index.js'

// What a container of deploy/ may do: CAP_NET_ADMIN and nothing else, with /proc/sys read-only, and the OOM score that the kubelet gives
// to pods that are critical for their node.

const root = new URL('..', import.meta.url).pathname

const asInAPod = [
  ...['unshare', '--net', '--mount', 'sh', '-e', '-c'],
  `ip link set lo up
mount --bind -o ro /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount -o remount,bind,ro /sys 2>/dev/null || true
mount --bind -o ro "$1" /proc/$$/oom_score_adj
mount -o remount,bind,ro /proc/$$/oom_score_adj
shift
exec setpriv --bounding-set=-all,+net_admin --inh-caps=-all,+net_admin "$@"`,
  'sh',
]

const why = whySkipped('deploy/clean-log.test.ts', 'nft')

test.skipIf(why !== undefined)('a start with the rights of the manifests warns about nothing', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kpng-clean-log-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const score = join(folder, 'oom_score_adj')
  writeFileSync(score, '-997\n')
  const [program = '', ...args] = [
    ...asInAPod,
    score,
    ...[process.execPath, join(root, 'cli/bin/kpng.js'), 'file', '-i', join(root, 'examples/state.yaml')],
    ...['to-local', '--node-name', 'vm-001', 'to-nft', '--cluster-cidr', '10.244.0.0/16,fd00:244::/56'],
    ...['--agent-socket', join(folder, 'agent.sock')],
  ]
  const kpng = spawn(program, args, { env: { PATH: process.env.PATH } })
  onTestFinished(() => void kpng.kill('SIGKILL'))
  let said = ''
  const closed = once(kpng, 'close')
  const named = new Promise<void>((resolve) => {
    for (const stream of [kpng.stdout, kpng.stderr]) {
      stream.on('data', (chunk) => {
        said += chunk
        if (/nf_conntrack_tcp_timeout_close_wait.*components\/conntrack/.test(said)) resolve()
      })
    }
  })
  await Promise.race([named, closed])
  kpng.kill('SIGTERM')
  await closed
  expect(said).toContain('Left a kernel setting as the node has it')
  expect(said.split('\n').filter((line) => !/^I\d|^$/.test(line))).toEqual([])
})
