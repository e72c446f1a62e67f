import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { certificatesIn } from './read-certificates.js'
import { readNode } from './read-node.js'
import { readProcesses } from './read-proxies.js'

test('on another system every fact is unknown, with the reason', async () => {
  const facts = await readNode({ nftProblem: async () => undefined, platform: 'darwin' })
  for (const fact of Object.values(facts)) {
    expect(fact).toEqual({ unknown: 'this is darwin, and the check is for Linux' })
  }
})

test('a program that fails makes one fact unknown, and the rest is read', async () => {
  const facts = await readNode({
    nftProblem: async () => undefined,
    agentSockets: ['/nonexistent/agent.sock'],
    run: async () => {
      throw new Error('iptables is broken')
    },
  })
  expect(facts.iptables).toHaveProperty('unknown')
  expect(facts.kernelRelease).toHaveProperty('value')
  expect(facts.agents).toMatchObject({ value: [{ path: '/nonexistent/agent.sock', problem: expect.any(String) }] })
})

test('reads the dates of certificates, and refuses a file without one', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kpng-doctor-'))
  try {
    const file = join(folder, 'a.crt')
    const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '10']
    execFileSync('openssl', [...args, '-subj', '/CN=doctor', '-keyout', join(folder, 'a.key'), '-out', file], {
      stdio: 'ignore',
    })
    const pem = readFileSync(file, 'utf8')
    const [first, second] = certificatesIn(`${pem}\n${pem}`, file)
    expect(first).toEqual(second)
    expect(first).toMatchObject({ where: file, subject: 'CN=doctor' })
    expect(((first?.validToMs ?? 0) - (first?.validFromMs ?? 0)) / 86_400_000).toBe(10)
    expect(() => certificatesIn('nothing', file)).toThrow('holds no certificate')
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test.skipIf(process.platform !== 'linux')('finds the proxies that run here, by their command lines', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kpng-doctor-'))
  const script = join(folder, 'kpng.js')
  writeFileSync(script, 'setInterval(() => {}, 1000)')
  const children = [
    spawn(process.execPath, [script, 'kube', 'to-local', 'to-nft']),
    spawn(process.execPath, [script, 'kube', 'to-api']),
    spawn(process.execPath, [script], { argv0: '/usr/local/bin/kube-proxy' }),
  ]
  const pids = children.map(({ pid }) => pid)
  try {
    const own = async () => (await readProcesses()).filter(({ pid }) => pids.includes(pid))
    await expect.poll(own, { timeout: 90_000 }).toEqual(
      expect.arrayContaining([
        { pid: pids[0], program: 'kpng', backend: 'to-nft' },
        { pid: pids[2], program: 'kube-proxy' },
      ]),
    )
    expect((await own()).length).toBe(2)
  } finally {
    for (const child of children) child.kill('SIGKILL')
    rmSync(folder, { recursive: true })
  }
})
