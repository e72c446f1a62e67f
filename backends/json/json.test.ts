import { endpoint, FakeCore, ips } from '@kpng/client/testing'
import { expect, onTestFinished, test } from 'vitest'
import { jsonBackend } from './index.js'

test('prints all Services of the node, one per line, on each change', async () => {
  const printed: string[] = []
  const core = new FakeCore(jsonBackend((text) => void printed.push(text)))
  onTestFinished(() => core.stop())
  const web = { name: 'web', ips: { clusterIps: ips('10.96.0.1') } }
  const names = () =>
    (printed.at(-1) ?? '')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { Service: { Name: string }; Endpoints: { IPs: { V4: string[] } }[] | null })
      .map(({ Service, Endpoints }) => [Service.Name, ...(Endpoints ?? []).flatMap(({ IPs }) => IPs.V4)].join(' '))
  await core.set(web, { name: 'dns', endpoints: [endpoint('10.244.1.1')] }).sync()
  expect(names()).toEqual(['dns 10.244.1.1', 'web'])
  await core.set({ ...web, endpoints: [endpoint('10.244.1.5'), endpoint('10.244.1.6')] }).sync()
  expect(names()).toEqual(['dns 10.244.1.1', 'web 10.244.1.5 10.244.1.6'])
  await core.delete('dns').sync()
  expect(names()).toEqual(['web 10.244.1.5 10.244.1.6'])
  expect(printed).toHaveLength(3)
})
