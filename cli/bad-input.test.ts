import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Commands } from './testing/commands.js'

// Mistakes that users make, with the real commands: a sentence or two that name the flag or the file, the right exit code (2: the
// command line is wrong, 1: something else is), the right help, and never a stack trace.

const commands = new Commands()
afterEach(() => commands.cleanUp())

const folder = mkdtempSync(join(tmpdir(), 'kpng-bad-input-'))
const at = (name: string) => join(folder, name)
const state = fileURLToPath(new URL('../examples/state.yaml', import.meta.url))
let busy: Server
let port: number

beforeAll(async () => {
  busy = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => busy.once('listening', resolve))
  port = (busy.address() as { port: number }).port
  mkdirSync(at('folder'))
  writeFileSync(at('text'), 'hello')
  writeFileSync(at('broken.yaml'), 'services: [\n')
  writeFileSync(at('unknown.yaml'), 'servces: []\n')
  writeFileSync(
    at('iptables.conf'),
    'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: ipvs\n',
  )
  writeFileSync(at('kubeconfig'), 'apiVersion: v1\nkind: Config\nclusters: []\ncontexts: []\nusers: []\n')
  writeFileSync(
    at('program.mjs'),
    `import { run } from '${new URL('../client/dist/index.js', import.meta.url)}'\nawait run(() => {})\n`,
  )
  const selfSigned = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-subj',
    '/CN=kpng',
  ]
  for (const name of ['a', 'b']) {
    execFileSync('openssl', [...selfSigned, '-keyout', at(`${name}.key`), '-out', at(`${name}.crt`)], {
      stdio: 'ignore',
    })
  }
})
afterAll(() => {
  busy.close()
  rmSync(folder, { recursive: true })
})

/** What is run, what standard error must say, and for exit code 2 the command whose help it points to. */
type Row = [command: string, says: RegExp, help?: string]

const usage: readonly Row[] = [
  ['kpng nonsense', /unknown command 'nonsense'/, 'kpng'],
  ['kpng file to-nowhere', /unknown command 'to-nowhere'/, 'kpng file'],
  ['kpng kube to-api --lissen x', /unknown option '--lissen'.*Did you mean --listen/s, 'kpng kube to-api'],
  ['kpng file -i STATE to-api --listen nowhere', /--listen: .*"nowhere".*host:port/, 'kpng file to-api'],
  ['kpng file -i STATE to-api --listen foo://bar', /--listen: .*"foo:\/\/bar"/, 'kpng file to-api'],
  ['kpng file -i STATE to-api --listen 127.0.0.1:99999', /--listen: .*65535/, 'kpng file to-api'],
  ['kpng file -i STATE to-api --local-api=false --globalv1-api=false', /Leave one of them on/, 'kpng file to-api'],
  ['kpng file -i STATE to-api --local-api=perhaps', /--local-api \[bool\].*Write true or false/, 'kpng file to-api'],
  ['kpng file -i STATE to-api --listen-tls-key x', /Give the certificate and the CA certificate/, 'kpng file to-api'],
  ['kpng file -i STATE to-api --profiling', /--metrics-bind-address/, 'kpng file to-api'],
  [
    'kpng file -i STATE to-api --healthz-bind-address nowhere',
    /--healthz-bind-address is "nowhere"/,
    'kpng file to-api',
  ],
  ['kpng local --api nowhere to-json', /--api: .*"nowhere"/, 'kpng local to-json'],
  ['kpng local --error-delay soon to-json', /--error-delay takes a duration/, 'kpng local to-json'],
  ['kpng local --max-msg-size big to-json', /--max-msg-size takes a whole number/, 'kpng local to-json'],
  ['kpng local --tls-key TEXT to-json', /key was given without its certificate/, 'kpng local to-json'],
  ['kpng -v loud local to-json', /-v takes a whole number/, 'kpng local to-json'],
  ['kpng --v=loud local to-json', /-v takes a whole number/, 'kpng local to-json'],
  ['kpng --log-format xml local to-json', /--log-format <format>.*text, json/, 'kpng'],
  [
    'kpng file -i STATE to-local to-nft --cluster-cidr 10.0.0.0',
    /--cluster-cidr is "10.0.0.0"/,
    'kpng file to-local to-nft',
  ],
  ['kpng file -i STATE to-local to-nft --masquerade-bit 99', /--masquerade-bit is "99"/, 'kpng file to-local to-nft'],
  [
    'kpng file -i STATE to-local to-nft --masquerade-all=maybe',
    /--masquerade-all is "maybe"/,
    'kpng file to-local to-nft',
  ],
  ['kpng file -i STATE to-local to-nft --trace-ratio half', /--trace-ratio/, 'kpng file to-local to-nft'],
  [
    'kpng file -i STATE to-local to-userspacelin --capture bpf',
    /--capture <how>.*nft, iptables, none/,
    'kpng file to-local to-userspacelin',
  ],
  [
    'kpng file -i STATE to-local to-userspacelin --port-range x',
    /port-range|range/,
    'kpng file to-local to-userspacelin',
  ],
  ['kpng playground --demo maybe', /--demo \[bool\].*Write true or false/, 'kpng playground'],
  ['kpng playground --port many', /--port takes a whole number/, 'kpng playground'],
  ['kpng playground --listen foo://bar', /"foo:\/\/bar"/, 'kpng playground'],
  ['kpng cleanup --backend bpf', /--backend is "bpf".*nft/, 'kpng cleanup'],
  ['kpng cleanup --dry-run', /--dry-run works only with --kube-proxy/, 'kpng cleanup'],
  ['kpng conformance', /--backend nft/, 'kpng conformance'],
  ['kpng conformance --backend foo', /"foo".*nft/, 'kpng conformance'],
  ['kpng conformance --backend nft --families v5', /--families takes v4, v6 or both/, 'kpng conformance'],
  ['kpng conformance --chaos 1s', /--backend nft/, 'kpng conformance'],
  ['kpng conformance --backend nft --chaos 0s', /--chaos 0s lets nothing go wrong/, 'kpng conformance'],
  ['kpng conformance --backend nft --seed 1', /--seed is for --chaos/, 'kpng conformance'],
  ['kpng conformance --backend nft --whole-machine', /--whole-machine is for --chaos/, 'kpng conformance'],
  ['kpng conformance --backend nft --chaos 1s --seed x', /--seed takes a whole number/, 'kpng conformance'],
  ['kpng file -i STATE --with-service-labels [ to-api', /key pattern "\["/, 'kpng file to-api'],
  ['kpng file -i STATE to-local to-nft --dry-run --table a/b', /"a\/b" is not a name/, 'kpng file to-local to-nft'],
  [
    'kpng file -i STATE to-local to-userspacelin --cluster-cidr x',
    /--cluster-cidr is "x"/,
    'kpng file to-local to-userspacelin',
  ],
  [
    'kpng file -i STATE to-local to-userspacelin --otlp-endpoint x',
    /"x" is no address of a trace collector/,
    'kpng file to-local to-userspacelin',
  ],
  ['kpng file -i STATE to-file -o FOLDER', /is a folder. Give the name of the file/, 'kpng file to-file'],
  ['kpng completion tcsh', /tcsh.*bash, zsh, fish, powershell/, 'kpng completion'],
  ['kpng completion', /missing required argument 'shell'/, 'kpng completion'],
  ['kpng-json --nod-name x', /unknown option '--nod-name'.*--node-name/s, 'kpng-json'],
  ['kpng-json --api nowhere', /--api: .*"nowhere"/, 'kpng-json'],
  ['kpng-callout to-json', /too many arguments|unexpected/i, 'kpng-callout'],
]

const surroundings: readonly Row[] = [
  ['kpng file -i FOLDER/gone.yaml to-api', /gone\.yaml does not exist/],
  ['kpng file -i FOLDER/broken.yaml to-api', /broken\.yaml/],
  ['kpng file -i FOLDER/unknown.yaml to-api', /unknown\.yaml.*servces/],
  ['kpng file -i STATE to-api --listen 127.0.0.1:BUSY', /BUSY.*in use/],
  ['kpng file -i STATE to-api --listen 192.0.2.1:1', /192\.0\.2\.1/],
  ['kpng file -i STATE to-api --listen unix:///nowhere/kpng.sock', /\/nowhere\/kpng\.sock/],
  ['kpng file -i STATE to-file -o FOLDER/gone/state.yaml', /The folder .*gone does not exist/],
  ['kpng file -i STATE to-file -o TEXT/state.yaml', /The folder .*text cannot be written to/],
  ['kpng file -i STATE to-api --listen-tls-key FOLDER/gone --listen-tls-crt TEXT --listen-tls-ca TEXT', /gone/],
  [
    'kpng file -i STATE to-api --listen-tls-key FOLDER/folder --listen-tls-crt TEXT --listen-tls-ca TEXT',
    /TLS file .*folder/,
  ],
  [
    'kpng file -i STATE to-api --listen-tls-key TEXT --listen-tls-crt TEXT --listen-tls-ca TEXT',
    /text holds no usable/,
  ],
  [
    'kpng file -i STATE to-api --listen-tls-key FOLDER/a.key --listen-tls-crt FOLDER/b.crt --listen-tls-ca FOLDER/a.crt',
    /a\.key does not belong to the certificate in .*b\.crt/,
  ],
  ['kpng kube --kubeconfig FOLDER/gone to-api', /gone/],
  ['kpng kube --kubeconfig FOLDER/folder to-api', /folder/],
  ['kpng kube --kubeconfig TEXT to-api', /text/],
  ['kpng kube --kubeconfig FOLDER/kubeconfig --context nowhere to-api', /nowhere/],
  ['kpng local --tls-ca FOLDER/gone to-json', /gone/],
  ['kpng local --tls-ca FOLDER/folder to-json', /folder/],
  ['kpng local to-nft --config FOLDER/gone', /gone/],
  ['kpng local to-nft --config FOLDER/folder', /folder/],
  ['kpng local to-nft --config TEXT', /text/],
  ['kpng local to-nft --config FOLDER/iptables.conf', /mode is "ipvs"/],
  ['kpng playground --data-dir TEXT', /--data-dir: .*text is not a folder/],
  ['kpng playground --kubeconfig /dev/null/kubeconfig', /--kubeconfig: \/dev\/null is not a folder/],
  ['kpng playground --port BUSY', /BUSY/],
  ['kpng conformance --backend nft --json FOLDER', /--json: .* is a folder/],
  ['kpng conformance --backend nft --json FOLDER/gone/report.json', /--json: the folder .*gone does not exist/],
  ['kpng conformance --backend nft --junit TEXT/report.xml', /--junit: .*text/],
  ['kpng conformance --backend nft --html FOLDER', /--html: .* is a folder/],
]

const filled = (text: string) =>
  text
    .replaceAll('STATE', state)
    .replaceAll('FOLDER', folder)
    .replaceAll('TEXT', at('text'))
    .replaceAll('BUSY', String(port))

async function run(line: string, env = {}) {
  const [name = '', ...args] = filled(line).split(' ')
  const finished = await commands.startWith({ KUBECONFIG: '', ...env }, name, ...args).finished
  expect(finished.stderr).not.toMatch(/^ {4}at /m)
  expect(finished.stdout).toBe('')
  // What a log line says before it is not part of the answer.
  const answer = finished.stderr.split('\n').filter((text) => text !== '' && !/^[IWE]\d{4} /.test(text))
  return { ...finished, answer }
}

test.each<Row>(usage)('%s', async (line, says, help) => {
  const { code, stderr, answer } = await run(line)
  expect(stderr).toMatch(says)
  expect(answer.at(-1)).toBe(`Run "${help} --help" for help.`)
  expect(answer.length).toBeLessThanOrEqual(3)
  expect(code).toBe(2)
})

test.each<Row>(surroundings)('%s', async (line, says) => {
  const { code, stderr, answer } = await run(line)
  expect(stderr).toMatch(new RegExp(filled(says.source)))
  expect(answer).toHaveLength(1)
  expect(code).toBe(1)
  expect(stderr).not.toMatch(/Serving the kpng API/)
})

const mayDropRights = process.getuid?.() === 0 && spawnSync('setpriv', ['--version'], { stdio: 'ignore' }).status === 0
if (!mayDropRights) console.warn('Skipped: files without permission are tested as root only, with setpriv.')

describe.skipIf(!mayDropRights)('without permission', () => {
  const asNobody = (line: string) => {
    const [name = '', ...args] = filled(line).split(' ')
    const bin = fileURLToPath(new URL(`bin/${name}.js`, import.meta.url))
    const user = ['--reuid', '65534', '--regid', '65534', '--clear-groups']
    return spawnSync('setpriv', [...user, process.execPath, bin, ...args], {
      encoding: 'utf8',
      env: { ...process.env, HOME: folder },
    })
  }
  beforeAll(() => {
    chmodSync(folder, 0o755)
    for (const name of ['secret.yaml', 'secret.key']) writeFileSync(at(name), 'services: []\n', { mode: 0o600 })
  })
  test.each([
    ['kpng file -i FOLDER/secret.yaml to-api', /secret\.yaml.*EACCES|permission/i],
    ['kpng file -i STATE to-file -o FOLDER/out.yaml', /The folder .* cannot be written to/],
    [
      'kpng file -i STATE to-api --listen-tls-key FOLDER/secret.key --listen-tls-crt TEXT --listen-tls-ca TEXT',
      /secret\.key/,
    ],
    ['kpng kube --kubeconfig FOLDER/secret.yaml to-api', /secret\.yaml/],
    ['kpng file -i STATE to-api --listen 127.0.0.1:80', /127\.0\.0\.1:80/],
    ['kpng conformance --backend nft', /root/],
    ['kpng playground --data-dir FOLDER/data', /data/],
  ])('%s', (line, says) => {
    const { status, stderr } = asNobody(line)
    expect(stderr).toMatch(says)
    expect(stderr).not.toMatch(/^ {4}at /m)
    expect(status).toBe(1)
  })
})

describe('a program with run()', () => {
  const program = (...args: string[]) =>
    spawnSync(process.execPath, [at('program.mjs'), ...args.map(filled)], { encoding: 'utf8' })

  test.each([
    [['--foo'], /^program\.mjs: Unknown option '--foo'\.\n/],
    [['words'], /^program\.mjs: Unexpected argument 'words'\.\n/],
    [['--api', 'nowhere'], /^program\.mjs: .*"nowhere"/],
    [['-v=loud'], /^program\.mjs: -v takes a whole number, not "loud"\.\n/],
    [['--error-delay', 'soon'], /^program\.mjs: --error-delay takes a duration/],
  ])('%j', (args, says) => {
    const { status, stderr } = program(...args)
    expect(stderr).toMatch(says)
    expect(stderr).toMatch(/\nRun program\.mjs with --help to see its flags\.\n$/)
    expect(stderr).not.toMatch(/^ {4}at /m)
    expect(status).toBe(2)
  })

  test('a file that is not there', () => {
    const { status, stderr } = program('--tls-ca', 'FOLDER/gone')
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringMatching(/^program\.mjs: .*gone.*\.\n$/) })
  })

  test('--help', () => {
    const { status, stdout } = program('--help')
    expect(status).toBe(0)
    expect(stdout).toMatch(/^Usage: program\.mjs \[flags\]\n/)
    expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([])
  })
})
