import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type KubeObject, type Playground, startPlayground } from '../index.js'
import { call, service, TestWatch } from '../testing/client.js'

const path = '/api/v1/namespaces/default/services'
const selector = 'labelSelector=seen%3Dyes'

/** The simplest correct client: keeps objects by name, resumes at the last version, lists again after 410. */
class Mirror {
  readonly state = new Map<string, KubeObject>()
  #version = ''
  readonly #playground: Playground

  constructor(playground: Playground) {
    this.#playground = playground
  }

  async list(): Promise<void> {
    const { body } = await call(this.#playground, 'GET', `${path}?${selector}`)
    this.state.clear()
    for (const item of body.items as KubeObject[]) this.state.set(item.metadata.name, item)
    this.#version = body.metadata.resourceVersion
  }

  /** Follows until the bookmark that comes when the watch ends, or the watch is cut. */
  async follow(): Promise<void> {
    const watch = await TestWatch.open(
      this.#playground,
      `${path}?watch=true&resourceVersion=${this.#version}&${selector}`,
    )
    for (let event = await watch.next(150); event; event = await watch.next(150)) {
      if (event.type === 'ERROR') return this.list()
      const { name, resourceVersion = '' } = event.object.metadata
      expect(Number(resourceVersion)).toBeGreaterThan(Number(this.#version))
      this.#version = resourceVersion
      if (event.type === 'DELETED') expect(this.state.delete(name)).toBe(true)
      else {
        expect(this.state.has(name)).toBe(event.type === 'MODIFIED')
        this.state.set(name, event.object)
      }
    }
    watch.close()
  }
}

const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('apply' as const),
      name: fc.integer({ min: 0, max: 5 }),
      seen: fc.boolean(),
      value: fc.integer({ min: 0, max: 3 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('delete' as const), name: fc.integer({ min: 0, max: 5 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('drop' as const, 'expire' as const, 'follow' as const) }) },
)

describe('a watch', () => {
  let playground: Playground
  beforeAll(async () => {
    playground = await startPlayground({ runPods: false })
  })
  afterAll(() => playground.close())

  it('that is cut, expired and resumed at random ends with the state of the server, each object in order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
        const mirror = new Mirror(playground)
        await mirror.list()
        for (const action of steps) {
          if (action.do === 'apply') {
            const labels = { seen: action.seen ? 'yes' : 'no', value: String(action.value) }
            playground.objects.apply(service(`r${action.name}`, {}, { labels }))
          } else if (action.do === 'delete') playground.objects.delete('Service', `r${action.name}`)
          else if (action.do === 'drop') playground.faults.dropWatches()
          else if (action.do === 'expire') playground.faults.expireVersions()
          else await mirror.follow()
        }
        await mirror.follow()
        const expected = playground.objects.list('Service', { namespace: 'default', labelSelector: 'seen=yes' })
        const version = ({ metadata }: Readonly<KubeObject>) => `${metadata.name} ${metadata.resourceVersion}`
        expect([...mirror.state.values()].map(version).sort()).toEqual(expected.map(version).sort())
      }),
      { numRuns: 20 },
    )
  })
})
