import type { KubernetesFacts } from '@kpng/api'
import { FrontendTable } from '@kpng/dataplane'
import { expect, test } from 'vitest'
import { endpoint, ips, type TestService, tcp, view } from '../dataplane/testing/objects.js'
import { diagnose } from './diagnose.js'
import { type Facts, waysOf } from './facts.js'

const unknown = { unknown: 'nobody was asked' }

function factsOf(service: TestService, more: Partial<Facts> = {}): Facts {
  const nodeView = view([service])
  const table = FrontendTable.of(nodeView)
  const path = `default/${service.name}`
  return {
    ...{ service: path, item: nodeView.services.get(path), ways: waysOf(table, path) },
    ...{ problems: table.problemsOf(path), selection: unknown, kubernetes: unknown },
    ...more,
  }
}

const web: TestService = {
  name: 'web',
  ips: { clusterIps: ips('10.96.0.10') },
  ports: [tcp(80, { targetPort: 8080 })],
  endpoints: [endpoint('10.244.1.5')],
}

const objects = (more: Partial<KubernetesFacts> = {}): KubernetesFacts => ({
  ...{ from: 'a test', pods: { value: [] }, otherPods: { value: [] }, networkPolicies: { value: [] } },
  ...more,
})

test('what nobody could say is unknown, and never fine', () => {
  const { verdict, unknown: said } = diagnose(factsOf({ ...web, name: 'gone' }, { ways: [], item: undefined }))
  expect(verdict).toBe('unknown')
  expect(said).toEqual([
    'Which endpoints are left out: nobody was asked.',
    'What the objects in Kubernetes say: nobody was asked.',
  ])
})

test('only who has the objects can say that there is no such Service', () => {
  const facts = factsOf(web, { ways: [], item: undefined, kubernetes: { value: objects() } })
  expect(diagnose(facts)).toMatchObject({ verdict: 'absent', headline: 'There is no Service default/web.' })
})

test('the same facts give the same diagnosis', () => {
  expect(diagnose(factsOf(web))).toEqual(diagnose(factsOf(web)))
})
