import { describe, expect, it } from 'vitest'
import { Balancer, type EndpointAddress, type ScopedEndpoints } from './balancer.js'

const address = (key: string): EndpointAddress => ({ ip: key, port: 80, key })
const everywhere = (...keys: string[]): ScopedEndpoints => {
  const list = keys.map(address)
  return { internal: list, external: list, cluster: list }
}

function balancer() {
  let now = 0
  const made = new Balancer({ now: () => now, random: () => 0.999 })
  const next = (client = 'client', tried?: string[]) => made.next('internal', client, tried && new Set(tried))?.key
  return { made, next, pass: (ms: number) => (now += ms) }
}

describe('round robin', () => {
  it('takes each in turn and begins again', () => {
    const { made, next } = balancer()
    made.set(everywhere('a', 'b', 'c'), undefined)
    expect([next(), next(), next(), next()]).toEqual(['a', 'b', 'c', 'a'])
  })

  it('shuffles and starts anew on a change, and only then', () => {
    const randoms = [0, 0, 0, 0]
    const made = new Balancer({ now: () => 0, random: () => randoms.shift() ?? 0.999 })
    made.set(everywhere('a', 'b', 'c'), undefined)
    const order = made.endpointKeys('internal')
    expect(order).not.toEqual(['a', 'b', 'c'])
    made.next('internal', 'x')
    made.set(everywhere('c', 'b', 'a'), undefined)
    expect(made.endpointKeys('internal')).toEqual(order)
    expect(made.next('internal', 'x')?.key).toBe(order[1])
    made.set(everywhere('a', 'b'), undefined)
    expect(made.next('internal', 'x')?.key).toBe(made.endpointKeys('internal')[0])
  })

  it('has a turn of its own for each kind of traffic', () => {
    const { made } = balancer()
    made.set({ internal: [address('a')], external: [address('b')], cluster: [address('a'), address('b')] }, undefined)
    expect(made.next('internal', 'x')?.key).toBe('a')
    expect(made.next('external', 'x')?.key).toBe('b')
    expect([made.next('cluster', 'x')?.key, made.next('cluster', 'x')?.key]).toEqual(['a', 'b'])
  })

  it('passes over those that were tried, as long as there is another', () => {
    const { made, next } = balancer()
    made.set(everywhere('a', 'b', 'c'), undefined)
    expect([next('x', ['a', 'b']), next('x', ['a', 'b', 'c'])]).toEqual(['c', 'a'])
    expect(balancer().next()).toBeUndefined()
  })
})

it('says which endpoints went, which are forbidden to some, and which are new', () => {
  const { made } = balancer()
  const set = (internal: string[], cluster: string[]) =>
    made.set({ internal: internal.map(address), external: [], cluster: cluster.map(address) }, undefined)
  const changes = (internal: string[], cluster: string[]) => {
    const { gone, forbidden, added } = set(internal, cluster)
    return { gone: [...gone], forbidden: [...forbidden.internal], added: [...added] }
  }
  expect(changes(['a', 'b'], ['a', 'b'])).toEqual({ gone: [], forbidden: [], added: ['a', 'b'] })
  expect(changes(['b'], ['a', 'b'])).toEqual({ gone: [], forbidden: ['a'], added: [] })
  expect(changes([], ['b'])).toEqual({ gone: ['a'], forbidden: ['b'], added: [] })
  expect(changes([], ['a', 'b'])).toEqual({ gone: [], forbidden: [], added: ['a'] })
})

it('an endpoint that drains is neither gone nor forbidden, and gets no new connections', () => {
  const { made, next } = balancer()
  made.set(everywhere('a', 'b'), undefined)
  const { gone, forbidden, added } = made.set(everywhere('b'), undefined, ['a'])
  expect([gone.size, forbidden.internal.size, forbidden.external.size, added.size]).toEqual([0, 0, 0, 0])
  expect([next(), next()]).toEqual(['b', 'b'])
  expect([...made.set(everywhere('b'), undefined).gone]).toEqual(['a'])
})

describe('affinity', () => {
  it('keeps a client at its endpoint; each use makes it last again', () => {
    const { made, next, pass } = balancer()
    made.set(everywhere('a', 'b'), 10)
    expect([next('x'), next('y'), next('x'), next('y')]).toEqual(['a', 'b', 'a', 'b'])
    pass(9000)
    expect(next('x')).toBe('a')
    pass(9000)
    expect(next('x')).toBe('a')
    // Only y was silent for the whole time.
    expect(next('y')).toBe('a')
  })

  it('forgets stale sessions', () => {
    const { made, next, pass } = balancer()
    made.set(everywhere('a', 'b'), 10)
    next('x')
    pass(5000)
    next('y')
    pass(5000)
    made.cleanUpStaleSessions()
    expect(made.sessions('internal')).toEqual([{ client: 'y', endpoint: 'b' }])
    made.set(everywhere('a', 'b'), undefined)
    expect(made.sessions('internal')).toEqual([])
  })

  it('moves a client at once when its endpoint goes, and says which are gone', () => {
    const { made, next } = balancer()
    made.set(everywhere('a', 'b'), 10)
    expect(next('x')).toBe('a')
    expect([...made.set(everywhere('b', 'c'), 10).gone]).toEqual(['a'])
    expect([made.has('a', 'internal'), made.has('b', 'internal')]).toEqual([false, true])
    const moved = next('x')
    expect(moved).not.toBe('a')
    expect(next('x')).toBe(moved)
  })

  it('moves a client whose endpoint failed', () => {
    const { made, next } = balancer()
    made.set(everywhere('a', 'b'), 10)
    expect([next('x'), next('x', ['a']), next('x')]).toEqual(['a', 'b', 'b'])
  })

  it('does not send traffic where its policy forbids, whatever the session says', () => {
    const { made } = balancer()
    made.set({ internal: [address('a')], external: [address('b')], cluster: [] }, 10)
    expect([made.next('internal', 'x')?.key, made.next('external', 'x')?.key]).toEqual(['a', 'b'])
  })

  it('is not disturbed by traffic of another kind, and shared with it where both may go', () => {
    const { made } = balancer()
    made.set(
      { internal: [address('a'), address('c')], external: [address('b')], cluster: [address('c'), address('a')] },
      10,
    )
    expect(made.next('internal', 'x')?.key).toBe('a')
    expect(made.next('external', 'x')?.key).toBe('b')
    expect(made.next('internal', 'x')?.key).toBe('a')
    expect(made.next('cluster', 'x')?.key).toBe('a')
  })
})
