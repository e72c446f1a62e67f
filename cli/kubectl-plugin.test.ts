import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { Commands } from './testing/commands.js'

// The plugin as kubectl starts it, with a kubectl on PATH that writes down its arguments.

const commands = new Commands()
afterEach(() => commands.cleanUp())

const pod = (name: string, nodeName: string, args: string[], phase = 'Running') => ({
  metadata: { name, namespace: 'kube-system' },
  spec: {
    nodeName,
    containers: [
      { name: 'core', args: ['kube', 'to-api'] },
      { name: 'proxy', args },
    ],
  },
  status: { phase },
})
const pods = [
  pod('kpng-a', 'worker-1', ['kube', 'to-local', 'to-nft']),
  pod('kpng-old', 'worker-2', ['local', 'to-nft'], 'Failed'),
  pod('kpng-b', 'worker-2', ['local', '--api=unix:///run/kpng/kpng.sock', 'to-nft']),
  pod('kpng-core', 'worker-3', ['kube', 'to-api']),
]

const ownRow = { name: 'worker-1', addresses: [], zone: '', podCidrs: [], isLocal: true, state: 'up to date' }

async function plugin(items: readonly object[], ...args: string[]) {
  const folder = commands.folder()
  const record = join(folder, 'calls')
  writeFileSync(join(folder, 'pods.json'), JSON.stringify({ items }))
  writeFileSync(
    join(folder, 'kubectl'),
    `#!${process.execPath}
const { appendFileSync, readFileSync } = require('node:fs')
const args = process.argv.slice(2)
appendFileSync(${JSON.stringify(record)}, JSON.stringify(args) + '\\n')
if (args.includes('get') && !args.includes('exec')) process.stdout.write(readFileSync(${JSON.stringify(join(folder, 'pods.json'))}))
else if (args.includes('kpng-b') && args.includes('--output=json')) { console.error('no such container'); process.exitCode = 1 }
else if (args.includes('--output=json')) console.log(JSON.stringify({ nodes: [${JSON.stringify(ownRow)}] }))
else { console.log('asked'); process.exitCode = 7 }
`,
  )
  chmodSync(join(folder, 'kubectl'), 0o755)
  const env = { PATH: `${folder}:${process.env.PATH}` }
  const finished = await commands.startWith(env, 'kubectl-kpng', ...args).finished
  const lines = existsSync(record) ? readFileSync(record, 'utf8').trim().split('\n') : []
  return { ...finished, calls: lines.map((line) => JSON.parse(line) as string[]) }
}

test("a question is asked in the node's pod, word by word, and its exit code is passed on", async () => {
  const question = ['explain', 'web; rm -rf /', '-n', '$(id)', '--from', '10.0.0.1']
  const { calls, stdout, code } = await plugin(pods, '--context', 'prod', '--node=worker-2', ...question)
  expect(calls).toEqual([
    ['--context=prod', 'get', 'pods', '--all-namespaces', '--selector=app.kubernetes.io/name=kpng', '--output=json'],
    ['--context=prod', 'exec', '--namespace=kube-system', '--container=proxy', 'kpng-b', '--', 'kpng', ...question],
  ])
  expect([stdout, code]).toEqual(['asked\n', 7])
})

test('the only node needs no name', async () => {
  const { calls } = await plugin(pods.slice(0, 1), 'status')
  expect(calls[1]?.slice(-4)).toEqual(['kpng-a', '--', 'kpng', 'status'])
})

test.each([
  [pods, ['status'], 2, /Say which node with --node: worker-1, worker-2\./],
  [pods, ['--node', 'worker-9', 'status'], 2, /"worker-9" has no running kpng pod\. Did you mean worker-[12]\?/],
  [[], ['status'], 3, /No running pod with the label app\.kubernetes\.io\/name=kpng/],
  [pods, ['delete'], 2, /"delete" is not status, get, explain, doctor/],
  [pods, ['--node'], 2, /--node needs a value/],
  [pods, ['--node', 'worker-1'], 2, /Say what to ask/],
])('%#', async (items, args, expectedCode, expected) => {
  const { stderr, code } = await plugin(items, ...args)
  expect(stderr).toMatch(expected)
  expect(code).toBe(expectedCode)
})

test.each([
  [pods.slice(0, 1), ['status', '--all'], 0],
  [pods, ['status', '--all'], 3],
  [pods, ['get', 'nodes'], 3],
])('%#: all nodes are asked, and one that does not answer is listed', async (items, words, expectedCode) => {
  const { calls, stdout, code } = await plugin(items, ...words)
  expect(calls.length).toBe(items.length === 1 ? 2 : 3)
  expect(calls[1]).toEqual([
    ...['exec', '--namespace=kube-system', '--container=proxy', expect.stringMatching(/^kpng-[ab]$/), '--'],
    ...['kpng', 'get', 'nodes', '--output=json'],
  ])
  expect(stdout).toMatch(/^worker-1 +up to date/m)
  if (items === pods) expect(stdout).toMatch(/^worker-2 +unknown .*no such container/m)
  expect(code).toBe(expectedCode)
})

test('all nodes, for programs', async () => {
  const { stdout } = await plugin(pods, 'status', '--all', '-o', 'jsonpath={.nodes[?(@.state=="unknown")].name}')
  expect(stdout).toBe('worker-2')
  expect(await plugin(pods, 'status', '--all', '--wait')).toMatchObject({ code: 2 })
})

test('doctor runs in the pod of a node, and says what that leaves out', async () => {
  const { calls, stdout, stderr, code } = await plugin(pods, '--node', 'worker-1', 'doctor')
  expect(calls[1]?.slice(-3)).toEqual(['--', 'kpng', 'doctor'])
  expect([stdout, code]).toEqual(['asked\n', 7])
  expect(stderr).toMatch(/looks from inside the pod.*kube-system\/kpng-a/)
})

test('help', async () => {
  expect((await plugin(pods, '--help')).stdout).toContain('kubectl kpng --node worker-1 status')
})
