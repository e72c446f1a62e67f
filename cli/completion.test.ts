import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { candidates } from './completion.js'
import { completionScripts } from './completion-scripts.js'
import { buildProgram } from './program.js'
import './testing/compiled.js'

const program = buildProgram('kpng', '1.2.3', () => Promise.reject(new Error('nothing runs here')))
const complete = (line: string) =>
  candidates(program, line.split(' ')).map((candidate) => candidate.split('\t')[0] as string)

describe('what may stand next', () => {
  test.each([
    [
      '',
      [
        'kube',
        'file',
        'api',
        'replay',
        'local',
        'status',
        'get',
        'explain',
        'doctor',
        'bundle',
        'playground',
        'cleanup',
        'conformance',
        'completion',
        'version',
        'help',
      ],
    ],
    ['file to-', ['to-api', 'to-file', 'to-record', 'to-local']],
    ['file -i to- to-', ['to-api', 'to-file', 'to-record', 'to-local']],
    ['file -i ', [':files']],
    ['file -i x to-api --listen-tls-k', ['--listen-tls-key']],
    ['file -i x to-api --listen-tls-key ', [':files']],
    [
      'kube to-local to-',
      [
        'to-nft',
        'to-iptables',
        'to-ipvs',
        'to-ebpf',
        'to-userspacelin',
        'to-winkernel',
        'to-winuserspace',
        'to-json',
        'to-callout',
      ],
    ],
    ['kube to-local to-nft --kubec', ['--kubeconfig']],
    ['kube to-local to-nft --nod', ['--nodeport-addresses', '--node-name']],
    ['--log-format ', ['text', 'json']],
    ['get s', ['services']],
    ['get services ', [':names-of-services']],
    ['explain w', [':names-of-services']],
    ['help kube to-l', ['to-local']],
    ['completion f', ['fish']],
    ['get -o ', ['text', 'wide', 'name', 'json', 'yaml', 'jsonpath=']],
    ['--log-format=', ['--log-format=text', '--log-format=json']],
    ['kube to-local to-userspacelin --capture=i', ['--capture=iptables']],
    ['playground --demo=', ['--demo=true', '--demo=false']],
    ['cleanup --b', ['--backend', '--bpffs']],
    ['nonsense --x', []],
  ])('kpng %s', (line, expected) => expect(complete(line)).toEqual(expected))
})

describe('the scripts', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kpng-completion-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const bin = fileURLToPath(new URL('bin', import.meta.url))
  for (const name of ['kpng', 'kpng-json']) {
    writeFileSync(join(folder, name), `#!/bin/sh\nexec "${process.execPath}" "${bin}/${name}.js" "$@"\n`, {
      mode: 0o755,
    })
  }
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}`, HOME: folder }
  const linesOf = (shell: string, args: readonly string[]) =>
    execFileSync(shell, args, { env, encoding: 'utf8' })
      .split('\n')
      .filter((line) => line !== '')

  type Line = [line: string, expected: string[]]
  const lines: readonly Line[] = [
    ['kpng file to-', ['to-api', 'to-file', 'to-record', 'to-local']],
    ['kpng kube to-local to-userspacelin --capt', ['--capture']],
    ['kpng --log-format ', ['text', 'json']],
    ['kpng-json --on', ['--once']],
  ]

  const installed = (shell: string) => {
    const found = spawnSync(shell, ['-c', 'exit 0'], { stdio: 'ignore' }).status === 0
    if (!found) console.warn(`Skipped: ${shell} is not installed, so its completion is not tested.`)
    return found
  }

  describe.skipIf(!installed('bash'))('bash, without the bash-completion package', () => {
    const inBash = (line: string) =>
      linesOf('bash', [
        ...['--norc', '--noprofile', '-c'],
        `source <(kpng completion bash); COMP_LINE=$1; COMP_POINT=\${#1}; _kpng_completion "\${1%% *}"; printf "%s\\n" "\${COMPREPLY[@]}"`,
        ...['bash', line],
      ])
    test.each<Line>([...lines, ['kpng --log-format=j', ['json']], ['kpng file -i ', []]])('%s', (line, expected) => {
      expect(inBash(line)).toEqual(expected)
    })
    test('is registered for every program', () => {
      const registered = linesOf('bash', ['--norc', '-c', 'source <(kpng completion bash); complete -p'])
      expect(registered).toEqual(
        expect.arrayContaining(
          ['kpng', 'kpng-json', 'kpng-callout'].map((name) => `complete -F _kpng_completion ${name}`),
        ),
      )
    })
  })

  describe.skipIf(!installed('zsh'))('zsh', () => {
    // The functions that show candidates work only while somebody types, so they print here.
    const inZsh = (line: string) =>
      linesOf('zsh', [
        ...['-f', '-c'],
        `compdef() { : }; source <(kpng completion zsh); _describe() { print -l -- "\${(@P)2}" }; _files() { print files }; words=("\${(@s: :)1}"); CURRENT=$#words; _kpng; exit 0`,
        ...['zsh', line],
      ]).map((candidate) => candidate.split(':')[0])
    test.each<Line>([...lines, ['kpng file -i ', ['files']]])('%s', (line, expected) => {
      expect(inZsh(line)).toEqual(expected)
    })
  })

  describe.skipIf(!installed('fish'))('fish', () => {
    const inFish = (line: string) =>
      linesOf('fish', ['--no-config', '-c', 'kpng completion fish | source; complete -C $argv[1]', line]).map(
        (candidate) => candidate.split('\t')[0],
      )
    test.each<Line>([...lines])('%s', (line, expected) => {
      expect(inFish(line).sort()).toEqual([...expected].sort())
    })
    test('files', () => {
      expect(inFish(`kpng file -i ${folder}/kpng-j`)).toEqual([`${folder}/kpng-json`])
    })
  })

  test('PowerShell registers a native completer that asks kpng', () => {
    expect(completionScripts.powershell).toMatch(
      /^Register-ArgumentCompleter -Native -CommandName kpng, kpng-json, kpng-callout -ScriptBlock \{/m,
    )
    expect(completionScripts.powershell).toContain('& $program __complete @rest')
  })

  test('PowerShell writes an empty word as two quotes', () => {
    expect(linesOf('kpng', ['__complete', 'file', '""']).map((line) => line.split('\t')[0])).toContain('to-api')
  })
})
