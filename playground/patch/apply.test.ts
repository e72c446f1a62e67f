import { describe, expect, it } from 'vitest'
import type { JsonObject, KubeObject } from '../objects/types.js'
import { definitions } from '../schema/definitions.js'
import { serverSideApply } from './apply.js'
import { decodeFields, encodeFields, fieldsOf, showPath } from './field-set.js'
import { trackUpdate, type Writer } from './managed-fields.js'

const definition = definitions.get('io.k8s.api.core.v1.Service')
const writer = (manager: string, operation: Writer['operation'] = 'Apply'): Writer => ({
  manager,
  operation,
  subresource: '',
  apiVersion: 'v1',
})
const config = (spec: JsonObject, labels?: Record<string, string>): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', ...(labels ? { labels } : {}) },
  spec,
})
const empty: KubeObject = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' } }

function apply(live: KubeObject, applied: JsonObject, manager: string, force = false): KubeObject {
  const { merged, track } = serverSideApply(live, applied, definition, writer(manager), force)
  track(merged)
  return merged
}

describe('sets of fields', () => {
  it('are written as the API server writes them, and read back', () => {
    const object = config({ ports: [{ port: 80 }], selector: { a: 'b' } }, { app: 'web' })
    const paths = [...fieldsOf(object, definition, false).keys()]
    const encoded = encodeFields(paths)
    expect(encoded).toEqual({
      'f:metadata': { 'f:labels': { 'f:app': {} } },
      'f:spec': { 'f:ports': { 'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:port': {} } }, 'f:selector': {} },
    })
    expect([...decodeFields(encoded)].sort()).toEqual(paths.sort())
    expect(paths.map(showPath)).toContain('.spec.ports[port=80,protocol="TCP"].port')
  })
})

describe('server-side apply', () => {
  const first = apply(
    empty,
    config({ ports: [{ port: 80, name: 'http' }], sessionAffinity: 'None' }, { app: 'web' }),
    'ann',
  )

  it('keeps what others applied, adds its own list items', () => {
    const both = apply(first, config({ ports: [{ port: 443, name: 'https' }] }), 'bob')
    expect(both.spec).toEqual({
      ports: [
        { port: 443, name: 'https' },
        { port: 80, name: 'http' },
      ],
      sessionAffinity: 'None',
    })
    expect(both.metadata.managedFields?.map(({ manager }) => manager).sort()).toEqual(['ann', 'bob'])
  })
  it('removes what its writer no longer applies', () => {
    const less = apply(first, config({ ports: [{ port: 80, name: 'http' }] }), 'ann')
    expect(less.spec).toEqual({ ports: [{ port: 80, name: 'http' }] })
    expect(less.metadata.labels).toEqual({})
  })
  it('removes a list item, but not one that another writer owns too', () => {
    const shared = apply(first, config({ ports: [{ port: 80, name: 'http' }] }), 'bob')
    const left = apply(shared, config({ sessionAffinity: 'None' }), 'ann')
    expect(left.spec).toEqual({ ports: [{ port: 80, name: 'http' }], sessionAffinity: 'None' })
    expect(apply(first, config({ sessionAffinity: 'None' }), 'ann').spec).toEqual({ sessionAffinity: 'None' })
  })
  it('refuses to change a field of another writer, unless forced', () => {
    const other = config({ ports: [{ port: 80, name: 'web' }] })
    expect(() => apply(first, other, 'bob')).toThrow(
      'Apply failed with 1 conflict: conflict with "ann" using v1: .spec.ports[port=80,protocol="TCP"].name',
    )
    const forced = apply(first, other, 'bob', true)
    expect(forced.spec).toMatchObject({ ports: [{ name: 'web' }] })
    // Ann has lost the field: applying without it does not remove it.
    expect(
      apply(forced, config({ ports: [{ port: 80 }], sessionAffinity: 'None' }, { app: 'web' }), 'ann').spec,
    ).toMatchObject({
      ports: [{ port: 80, name: 'web' }],
    })
  })
  it('shares a field when the value is the same', () => {
    expect(() => apply(first, config({ sessionAffinity: 'None' }), 'bob')).not.toThrow()
  })
  it('conflicts with a field that somebody updated', () => {
    const updated = structuredClone(first)
    updated.spec = { ...(updated.spec as JsonObject), sessionAffinity: 'ClientIP' }
    trackUpdate(updated, first, definition, writer('kubectl-edit', 'Update'))
    expect(() => apply(updated, config({ sessionAffinity: 'None' }), 'ann')).toThrow('conflict with "kubectl-edit"')
  })
})
