import { families } from '@kpng/api'
import { describe, expect, it } from 'vitest'
import { checklist } from '../checklist.js'
import { cellId, type KubernetesObject } from './case.js'
import { cases } from './index.js'

const placed = cases.flatMap((one) =>
  one.steps.flatMap((step, index) => step.cells.map((cell) => ({ one, index, cell }))),
)

const twice = (names: readonly string[]) => names.filter((name, index) => names.indexOf(name) !== index)

describe('the cases', () => {
  it('are many, in both families', () => {
    expect(placed.length).toBeGreaterThan(100)
    for (const family of families)
      expect(placed.filter(({ cell }) => cell.to.family === family).length).toBeGreaterThan(50)
  })

  it('have ids that name one thing each', () => {
    expect(twice(cases.map(({ id }) => id))).toEqual([])
    expect(twice(placed.map(({ one, index, cell }) => cellId(one, index, cell)))).toEqual([])
    for (const { id } of cases) expect(id).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/)
  })

  it('cite rows of the checklist that exist, and every row is cited', () => {
    const cited = new Set(placed.flatMap(({ cell }) => cell.rows))
    expect([...cited].filter((row) => checklist[row] === undefined)).toEqual([])
    expect(placed.filter(({ cell }) => cell.rows.length === 0)).toEqual([])
    expect(Object.keys(checklist).filter((row) => !cited.has(Number(row)))).toEqual([])
  })

  it('ask an address of the family they claim', () => {
    for (const { cell } of placed)
      expect([cell.id, cell.to.ip.includes(':')]).toEqual([cell.id, cell.to.family === 'IPv6'])
  })

  it('share no object name, address or node port with another case', () => {
    const owners = new Map<string, string>()
    const clashes: string[] = []
    for (const { id, steps } of cases) {
      for (const claim of new Set(steps.flatMap(({ objects }) => objects.flatMap(claimsOf)))) {
        const owner = owners.get(claim)
        if (owner !== undefined && owner !== id) clashes.push(`${claim} of ${owner} and ${id}`)
        owners.set(claim, id)
      }
    }
    expect(clashes).toEqual([])
  })

  it('keep a flow to one client and one destination', () => {
    const flows = new Map<string, string>()
    for (const { one, cell } of placed) {
      if (cell.flow === undefined) continue
      const name = `${one.id}/${cell.flow}`
      const ends = `${cell.client} ${JSON.stringify(cell.to)}`
      expect(flows.get(name) ?? ends).toBe(ends)
      flows.set(name, ends)
    }
    expect(flows.size).toBeGreaterThan(10)
  })
})

interface Spec {
  clusterIPs?: string[]
  externalIPs?: string[]
  ports?: { nodePort?: number; protocol?: string }[]
}

/** What no two cases may both have. */
function claimsOf({ kind, metadata, spec, status }: KubernetesObject): string[] {
  const { clusterIPs = [], externalIPs = [], ports = [] } = (spec ?? {}) as Spec
  const ingress =
    (status as { loadBalancer?: { ingress?: { ip?: string }[] } } | undefined)?.loadBalancer?.ingress ?? []
  const addresses = [...clusterIPs, ...externalIPs, ...ingress.flatMap(({ ip }) => ip ?? [])]
  return [
    `${kind} ${metadata.name}`,
    ...addresses.filter((ip) => /[.:]/.test(ip)),
    ...ports.flatMap(({ nodePort, protocol }) => (nodePort === undefined ? [] : [`node port ${nodePort}/${protocol}`])),
  ]
}
