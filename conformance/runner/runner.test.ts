import { type Family, KpngError } from '@kpng/api'
import { describe, expect, it } from 'vitest'
import type { Case, Cell } from '../cases/case.js'
import { refused } from '../cases/cells.js'
import { inTurns } from '../in-turns.js'
import { settingsOf } from '../options.js'
import { fillPlaceholders, proxyNamed, specialisedProxyNamed, splitCommand } from '../proxies.js'
import { judge } from './judge.js'
import { casesIn, casesNamed, roundsOf } from './rounds.js'

const cell = (id: string, family: Family = 'IPv4'): Cell => ({
  id,
  client: 'pod-a',
  to: { protocol: 'TCP', family, ip: '10.96.1.1', port: 80 },
  expect: refused,
  rows: [14],
})
const object = (name: string) => ({ apiVersion: 'v1', kind: 'Service', metadata: { name } })
const step = (name: string, ...cells: Cell[]) => ({ after: name, objects: [object(name)], cells })

const one: Case = { id: 'one', title: '', steps: [step('one-1', cell('a.v4'))] }
const two: Case = {
  id: 'two',
  title: '',
  steps: [step('two-1', cell('b.v4')), step('two-2', cell('b.v4'), cell('c.v6', 'IPv6'))],
}
const apart: Case = { id: 'apart', title: '', alone: true, steps: [step('apart-1', cell('d.v4'))] }

describe('rounds', () => {
  it('go side by side, keep what has ended, and leave apart what wants to be', () => {
    const rounds = roundsOf([one, two, apart]).map(({ objects, cells }) => [
      objects.map(({ metadata }) => metadata.name),
      cells.map(({ id }) => id),
    ])
    expect(rounds).toEqual([
      [
        ['one-1', 'two-1'],
        ['one/a.v4', 'two/1/b.v4'],
      ],
      [
        ['one-1', 'two-2'],
        ['two/2/b.v4', 'two/2/c.v6'],
      ],
      [['apart-1'], ['apart/d.v4']],
    ])
  })

  it('take whole cases, by the id of the case or of a cell', () => {
    expect(casesNamed([one, two], ['one'])).toEqual([one])
    expect(casesNamed([one, two], ['two/2/c.*'])).toEqual([two])
    expect(casesNamed([one, two], ['nothing'])).toEqual([])
  })

  it('take the cells of a family', () => {
    expect(casesIn([two], ['IPv6'])[0]?.steps.map(({ cells }) => cells.map(({ id }) => id))).toEqual([[], ['c.v6']])
  })
})

describe('judging', () => {
  const [placed] = roundsOf([one])[0]?.cells ?? []
  const named = [
    { cells: ['one/*'], reason: 'so', link: 'https://example.com/so', instead: { outcome: 'passed' } },
  ] as const
  const gateway = { outcome: 'reached', server: 'gateway', from: '', port: 80 } as const
  it.each([
    ['right', [{ outcome: 'refused' } as const], []],
    ['wrong', [{ outcome: 'dropped' } as const], []],
    ['deviates', [gateway], named],
    ['unexpectedly-right', [{ outcome: 'refused' } as const], named],
    ['wrong', [{ outcome: 'dropped' } as const], named],
  ])('%s', (status, outcomes, deviations) => {
    if (!placed) throw new Error('no cell')
    expect(judge(placed, outcomes, deviations, 1)).toMatchObject({ id: 'one/a.v4', status, to: '10.96.1.1:80/TCP' })
  })
})

describe('the command', () => {
  it('is split at spaces, with quotes and without a shell', () => {
    expect(splitCommand(`  kpng file -i "a b" '' x'y z'  $(id) `)).toEqual([
      'kpng',
      'file',
      '-i',
      'a b',
      '',
      'xy z',
      '$(id)',
    ])
    expect(() => splitCommand('a "b')).toThrow(KpngError)
  })

  it('gets its placeholders filled, and says which cannot be', () => {
    const values = { node: 'node-a', manifests: '/m', kubeconfig: undefined }
    expect(fillPlaceholders(['-n={node}', '{manifests}', '{other}'], values)).toEqual(['-n=node-a', '/m', '{other}'])
    expect(() => fillPlaceholders(['{kubeconfig}'], values)).toThrow(/\{kubeconfig\}/)
  })

  it('is known for named proxies', () => {
    expect(proxyNamed('nft', ['kpng'], 'manifests').join(' ')).toBe(
      'kpng file -i {manifests} to-local --node-name {node} to-nft --cluster-cidr {clusterCidr} --agent-socket=',
    )
    expect(proxyNamed('kube-proxy-nftables', ['kpng'], { kubeconfig: 'k' })).toContain('{kubeconfig}')
    expect(() => proxyNamed('kube-proxy-nftables', ['kpng'], 'manifests')).toThrow(/kubeconfig/)
    expect(() => proxyNamed('other', ['kpng'], 'manifests')).toThrow(/other/)
  })

  it('of a specialised proxy differs in its name and its ports', () => {
    const main = proxyNamed('nft', ['kpng'], 'manifests')
    const specialised = specialisedProxyNamed('nft', ['kpng'], 'manifests') ?? []
    expect(main.filter((word) => !specialised.includes(word))).toEqual([])
    expect(specialised.filter((word) => !main.includes(word)).join(' ')).toBe(
      '--service-proxy-name {serviceProxyName} --healthz-bind-address 0.0.0.0:10266 --metrics-bind-address 127.0.0.1:10259',
    )
    expect(specialisedProxyNamed('userspace', ['kpng'], 'manifests')).toBeUndefined()
  })

  it('of the specialised proxy beside kube-proxy is that of kpng with rules of the same kind', () => {
    const feed = { kubeconfig: 'k' }
    expect(specialisedProxyNamed('kube-proxy-nftables', ['kpng'], feed)).toContain('to-nft')
    expect(specialisedProxyNamed('kube-proxy-iptables', ['kpng'], feed)).toContain('to-iptables')
  })
})

describe('options', () => {
  const options = { proxy: ['p', '{manifests}'], feed: 'manifests', log: () => {} } as const
  it('are checked at the door', () => {
    expect(() => settingsOf({ ...options, proxy: [] })).toThrow(/no proxy command/)
    expect(() => settingsOf({ ...options, only: ['nonsense'] })).toThrow(/nonsense/)
    expect(() => settingsOf({ ...options, backend: 'other' })).toThrow(/other.*nft/s)
  })

  it('warn of a command that gets no objects', () => {
    const lines: string[] = []
    settingsOf({ ...options, proxy: ['p'], log: (line) => lines.push(line) })
    expect(lines.join()).toContain('{manifests}')
  })

  it('leave out the objects that an API server refuses', () => {
    const { cases } = settingsOf({ ...options, feed: { kubeconfig: 'k' }, only: ['bad-objects'] })
    expect(cases.flatMap(({ steps }) => steps.flatMap(({ objects }) => objects))).toEqual([])
  })
})

it('runs so many tasks at a time, and keeps their order', async () => {
  let running = 0
  let most = 0
  const tasks = [3, 1, 2, 1].map((ms, index) => async () => {
    most = Math.max(most, ++running)
    await new Promise((resolve) => setTimeout(resolve, ms))
    running--
    return index
  })
  expect(await inTurns(tasks, 2)).toEqual([0, 1, 2, 3])
  expect(most).toBe(2)
})
