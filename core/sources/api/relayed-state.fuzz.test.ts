import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { globalv1, localv1, silentLog } from '@kpng/api'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { damagedBytes, fuzzing, oddBytes } from '../../../scripts/testing/damaged.js'
import { Store } from '../../store/index.js'
import { Skips } from '../skips.js'
import { RelayedState } from './relayed-state.js'

// Whatever an upstream sends: the relay goes on, and its store holds only what can be sent on.

const { GLOBAL_SERVICE_INFOS, GLOBAL_ENDPOINT_INFOS, GLOBAL_NODE_INFOS, GLOBAL_SERVICE_CIDRS } = localv1.Set

const encoded = (set: localv1.Set, path: string, bytes: Uint8Array) =>
  Buffer.from(toBinary(localv1.ValueSchema, create(localv1.ValueSchema, { ref: { set, path }, bytes })))

const good = [
  encoded(
    GLOBAL_SERVICE_INFOS,
    'default|web||',
    toBinary(
      globalv1.ServiceInfoSchema,
      create(globalv1.ServiceInfoSchema, {
        service: {
          namespace: 'default',
          name: 'web',
          ips: { clusterIps: { v4: ['10.96.0.1'] } },
          ports: [{ port: 80 }],
        },
      }),
    ),
  ),
  encoded(
    GLOBAL_ENDPOINT_INFOS,
    'default|web|web-1|1f',
    toBinary(
      globalv1.EndpointInfoSchema,
      create(globalv1.EndpointInfoSchema, { endpoint: { ips: { v4: ['10.0.0.1'] } }, topology: { node: 'node-1' } }),
    ),
  ),
  encoded(
    GLOBAL_NODE_INFOS,
    '|node-1||',
    toBinary(globalv1.NodeInfoSchema, create(globalv1.NodeInfoSchema, { node: { name: 'node-1' } })),
  ),
  encoded(
    GLOBAL_SERVICE_CIDRS,
    '|kubernetes||',
    toBinary(
      localv1.ServiceCIDRSchema,
      create(localv1.ServiceCIDRSchema, { name: 'kubernetes', cidrs: ['10.96.0.0/16'] }),
    ),
  ),
]

const aValue = fc.oneof(
  fc.constantFrom(...good),
  fc.constantFrom(...good).chain(damagedBytes),
  fc.constantFrom(...good).chain(damagedBytes),
)

interface ChangeSet {
  readonly reset: boolean
  readonly sets: readonly Buffer[]
  readonly deletes: readonly Buffer[]
}

const aChangeSet: fc.Arbitrary<ChangeSet> = fc.record({
  reset: fc.boolean(),
  sets: fc.array(aValue, { maxLength: 6 }),
  deletes: fc.array(aValue, { maxLength: 2 }),
})

function decoded(bytes: Buffer): localv1.Value[] {
  try {
    return [fromBinary(localv1.ValueSchema, bytes)]
  } catch {
    return []
  }
}

test('an upstream sends anything', () => {
  fc.assert(
    fc.property(fc.array(aChangeSet, { maxLength: 5 }), (changeSets) => {
      const store = new Store()
      const state = new RelayedState(new Skips(silentLog))
      for (const { reset, sets, deletes } of changeSets) {
        const operations = {
          reset,
          sets: sets.flatMap(decoded),
          deletes: deletes.flatMap(decoded).flatMap(({ ref }) => ref ?? []),
          triggers: [],
          timeline: undefined,
        }
        store.update((tx) => state.apply(operations, tx))
      }
      for (const { service } of store.entries()) if (service) toBinary(localv1.ServiceSchema, service)
      for (const [name, node] of store.nodes) expect(node.name).toBe(name)
    }),
    fuzzing<ChangeSet[]>([[{ reset: true, sets: [...good, ...oddBytes], deletes: [...good] }]]),
  )
})
