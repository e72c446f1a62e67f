import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { AgentStatus } from '@kpng/api'
import { namespacesOf, whySkipped } from '@kpng/linux/lab'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { Commands, type Running } from '../testing/commands.js'

// `kpng playground` as people run it: real processes, kubectl, a terminal.

const commands = new Commands()
afterEach(() => commands.cleanUp())

vi.setConfig({ testTimeout: 180_000 })
const limit = 90_000
const has = (program: string, ...args: string[]) => spawnSync(program, args, { stdio: 'ignore' }).status === 0
const noKubectl = !has('kubectl', 'version', '--client')
const noPython = !has('python3', '--version')
if (noKubectl) console.warn('SKIPPED: the playground with kubectl, which is not installed.')
if (noPython) console.warn('SKIPPED: the playground on a terminal, because python3 is not installed.')
const noLab = noKubectl ? 'there is no kubectl' : whySkipped('kpng playground --lab nft', 'nft', 'curl')

function start(...args: string[]): { run: Running; kubectl: (...words: string[]) => string } {
  const kubeconfig = join(commands.folder(), 'kubeconfig')
  const run = commands.start('kpng', 'playground', '--kubeconfig', kubeconfig, ...args)
  const env = { ...process.env, KUBECONFIG: kubeconfig }
  return { run, kubectl: (...words) => execFileSync('kubectl', words, { env, encoding: 'utf8' }) }
}

const podsIn = (text: string) => new Set(text.match(/web-\w{6,}-\w{5}/g))

describe.skipIf(noKubectl)('in a pipe', () => {
  test('says what is new, follows an edited Service, and ends on a signal', async () => {
    const { run, kubectl } = start()
    await run.says(/Service web at 127\.\d+\.1\.1:8080, 3 pods ready/, limit)
    await run.says(/http:\/\/127\.\d+\.1\.1:8080 → web-/, limit)
    expect(run.stdout.split('\n').findIndex((line) => /^\d\d:/.test(line))).toBeLessThanOrEqual(5)
    const url = /^kpng playground: (http:\S+) shows it live/.exec(run.stdout)?.[1] ?? ''
    const status = (await (await fetch(`${url}v1/status`)).json()) as AgentStatus
    expect(status).toMatchObject({ role: 'node', backend: 'userspace', source: { stale: false } })
    const hint = status.hints?.find(({ command }) => command.includes(' explain '))?.command.split(' ') ?? []
    const explained = await commands.run('kpng', ...hint.slice(hint.indexOf('explain')))
    expect(explained.stdout).toContain('The data plane holds exactly this.')
    kubectl(
      'patch',
      'service',
      'web',
      '-p',
      '{"spec":{"ports":[{"port":8080,"$patch":"delete"},{"name":"http","port":9191,"targetPort":"http"}]}}',
    )
    await run.says(/in the data plane after [\d.]+ ms: now at 127\.\d+\.1\.1:9191/, limit)
    kubectl('scale', 'deployment', 'web', '--replicas', '0')
    await run.says(/:9191 → nobody: connection refused/, limit)
    kubectl('scale', 'deployment', 'web', '--replicas', '1')
    await run.says(/:9191 → nobody.*:9191 → web-/s, limit)
    kubectl('delete', 'service', 'web')
    await run.says('Service web deleted', limit)
    kubectl('expose', 'deployment', 'web', '--port', '9292', '--target-port', '8080', '--type', 'NodePort')
    await run.says(/Service web at 127\.\d+\.\d+\.\d+:9292/, limit)
    const { code, stdout, stderr } = await run.stop()
    expect(code).toBe(0)
    // Nothing is said twice, and nothing is written below.
    const said = stdout
      .split('\n')
      .filter((line) => /^\d\d:/.test(line))
      .map((line) => line.slice(9))
    const answers = said.filter((line) => line.includes('→ web-')).map((line) => line.replace(/ in .*/, ''))
    expect(new Set(answers).size).toBe(answers.length)
    expect(stderr.trim().split('\n')).toEqual([expect.stringContaining('Stopping')])
  })

  test('a second one takes other addresses and says whose the first are', async () => {
    const first = start()
    await first.run.says('→ web-', limit)
    const second = start()
    await second.run.says('→ web-', limit)
    const rangeOf = ({ run }: typeof first) => /Service web at (127\.\d+)/.exec(run.stdout)?.[1]
    expect(rangeOf(second)).not.toBe(rangeOf(first))
    expect(second.run.stdout).toMatch(/Another playground \(pid \d+\) has 127\.96\.0\.0\/16; this one has 127\./)
    const ours = podsIn(second.kubectl('get', 'pods', '-o', 'name'))
    for (const pod of podsIn(second.run.stdout)) expect(ours).toContain(pod)
    const asked = `${rangeOf(first)}.0.0/16`
    const third = await commands.run('kpng', 'playground', '--service-cidr', asked)
    expect(third.code).toBe(1)
    expect(third.stderr).toContain(`Another playground (pid ${first.run.child.pid}) has the addresses ${asked}`)
  })
})

describe.skipIf(noPython)('on a terminal', () => {
  const helper = fileURLToPath(new URL('../testing/terminal.py', import.meta.url))
  const kpng = fileURLToPath(new URL('../bin/kpng.js', import.meta.url))
  const onTerminal = (env: NodeJS.ProcessEnv, ...args: string[]) =>
    commands.startProgram('python3', [helper, '100', '30', process.execPath, kpng, 'playground', ...args], {
      TERM: 'xterm-256color',
      // Node takes the output of a CI system for one without colours.
      CI: undefined,
      ...env,
    })

  test('a screen that is drawn again when the size changes, with the log in a file, and that leaves no trace', async () => {
    const run = onTerminal({ NO_COLOR: undefined, FORCE_COLOR: undefined }, '-v', '4')
    await run.says(/Answers now/, limit)
    await run.says(/web-\w+-\w{5}.* in [\d.]+ ms/, limit)
    const log = /Log: (\S+kpng\.log)/.exec(run.stdout)?.[1] ?? ''
    expect(existsSync(log)).toBe(true)
    const drawn = run.stdout.length
    run.child.stdin?.write('resize 41 12\n')
    await expect
      .poll(() => run.stdout.slice(drawn), { timeout: limit })
      .toContain("kpng playground\x1b[0m · kpng's userspace proxy…")
    run.child.stdin?.write('type \\x03\n')
    const { code, stdout } = await run.finished
    expect(code).toBe(0)
    const screen = stdout.slice(stdout.indexOf('\x1b[?1049h'))
    const before = stdout.slice(0, stdout.indexOf('\x1b[?1049h')).trim().split('\n')
    expect(before.filter((line) => !/^[IWE]\d{4} /.test(line)).length).toBeLessThanOrEqual(5)
    expect(screen.endsWith('\x1b[?25h\x1b[?1049l')).toBe(true)
    expect(screen).toContain('\x1b[32m')
    expect(screen).not.toMatch(/[IWE]\d{4} \d\d:/)
    expect(existsSync(log)).toBe(false)
  })

  test('without colours if NO_COLOR says so', async () => {
    const run = onTerminal({ NO_COLOR: '1', FORCE_COLOR: undefined })
    await run.says(/ in [\d.]+ ms/, limit)
    for (const colour of [1, 2, 32, 36]) expect(run.stdout).not.toContain(`\x1b[${colour}m`)
    run.child.stdin?.write('type \\x03\n')
    expect((await run.finished).code).toBe(0)
  })
})

describe('the lab', () => {
  test.skipIf(process.getuid?.() !== 0)('without root says in one sentence what is missing', () => {
    const kpng = fileURLToPath(new URL('../bin/kpng.js', import.meta.url))
    const { status, stderr } = spawnSync(process.execPath, [kpng, 'playground', '--lab', 'nft'], {
      uid: 65534,
      gid: 65534,
      encoding: 'utf8',
    })
    expect(status).toBe(1)
    expect(stderr).toBe('kpng: The lab needs root to make network namespaces; run it with sudo.\n')
  })

  test.skipIf(noLab)('serves pods in namespaces through the kernel, and removes everything', async () => {
    const { run, kubectl } = start('--lab', 'nft')
    const pid = run.child.pid ?? 0
    await run.says(/http:\/\/10\.96\.1\.1:8080 → web-/, limit)
    const hint = run.stdout.split('\n').find((line) => line.includes('ip netns exec')) ?? ''
    expect(execFileSync('sh', ['-c', hint], { encoding: 'utf8', stdio: 'pipe' })).toMatch(
      /^pod=web-.*client=10\.70\.0\.1/,
    )
    kubectl('scale', 'deployment', 'web', '--replicas', '1')
    await expect.poll(() => namespacesOf(pid), { timeout: limit }).toHaveLength(3)
    const node = (await namespacesOf(pid)).find((name) => name.endsWith('-node')) ?? ''
    const rules = () =>
      execFileSync('ip', ['netns', 'exec', node, 'nft', 'list', 'map', 'ip', 'kpng', 'endpoints'], { encoding: 'utf8' })
    await expect.poll(() => rules().match(/10\.96\.1\.1 \. tcp/g), { timeout: limit }).toHaveLength(1)
    await run.stop('SIGKILL')
    const next = start('--lab', 'nft')
    await next.run.says(/→ web-/, limit)
    expect(await namespacesOf(pid)).toEqual([])
    expect((await next.run.stop()).code).toBe(0)
    expect(await namespacesOf(next.run.child.pid ?? 0)).toEqual([])
  })
})
