import { create } from '@bufbuild/protobuf'
import { localv1 } from '@kpng/api'
import { expect, it } from 'vitest'
import { serviceCidrFromKubernetes } from './service-cidr.js'

it.each([
  ['both families (checklist 9)', ['10.96.0.0/12', 'FD00::/108'], ['10.96.0.0/12', 'fd00::/108'], 0],
  ['a bad one (checklist 11)', ['10.96.0.0', '10.96.0.0/12'], ['10.96.0.0/12'], 1],
  ['no list', 'x', [], 1],
])('%s', (_, cidrs, expected, complaints) => {
  const reasons: string[] = []
  const object = { metadata: { name: 'kubernetes' }, spec: { cidrs } }
  expect(serviceCidrFromKubernetes(object, (reason) => reasons.push(reason))).toEqual(
    create(localv1.ServiceCIDRSchema, { name: 'kubernetes', cidrs: expected }),
  )
  expect(reasons).toHaveLength(complaints)
})
