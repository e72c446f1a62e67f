import type { EndpointAnswer, ServiceAnswer } from '@kpng/api'
import { expect, test } from 'vitest'
import { recordingLog, until } from '../core/testing/until.js'
import { change, endpoint, fullSync, ips, view } from '../dataplane/testing/objects.js'
import { ServiceLog } from './service-log.js'

const service = (name: string, count: number) => ({
  name,
  ips: { clusterIps: ips('10.96.0.1') },
  endpoints: Array.from({ length: count }, (_, index) => endpoint(`10.0.0.${index + 1}`)),
})

const notReady: EndpointAnswer = {
  ...{ ips: [], ports: [], pod: '', node: '', zone: '', slice: '', isLocal: false, scopes: [] },
  ...{ ready: false, serving: false, terminating: false, reason: 'not-ready' },
}

test('each changed Service is a line at -v 2, and nothing at the start', () => {
  const { log, lines } = recordingLog()
  const of = view([service('web', 2)])
  const services = new ServiceLog({ log })
  services.note(fullSync)
  services.note(change(of, 'web', service('web', 1)))
  services.note(change(of, 'web', undefined))
  expect(lines).toEqual([
    '2 A Service changed {"service":"default/web","before":2,"after":1}',
    '2 A Service changed {"service":"default/web","before":1}',
  ])
})

test('a Service that lost its last endpoint is a warning, with the reason', async () => {
  const { log, told } = recordingLog()
  const serviceAnswer = async (name: string): Promise<ServiceAnswer> => ({
    ...{ service: name, isKnown: true, nearest: [], endpoints: [notReady, notReady] },
  })
  const of = view([service('web', 2)])
  new ServiceLog({ log, serviceAnswer }).note(change(of, 'web', service('web', 0)))
  await until('the warning', () => told.some(({ level }) => level === 'warn'))
  expect(told.at(-1)?.fields).toEqual({ service: 'default/web', reason: 'none of its 2 endpoints is ready' })
})

test('without a reason if its endpoints are used again by now', async () => {
  const { log, told } = recordingLog()
  const { reason: _, ...used } = { ...notReady, ready: true, scopes: ['internal'] as const }
  const serviceAnswer = async (name: string): Promise<ServiceAnswer> => ({
    ...{ service: name, isKnown: true, nearest: [], endpoints: [used] },
  })
  new ServiceLog({ log, serviceAnswer }).note(change(view([service('web', 2)]), 'web', service('web', 0)))
  await until('the warning', () => told.some(({ level }) => level === 'warn'))
  expect(told.at(-1)?.fields?.reason).toBeUndefined()
})

test('many at once are a few lines and a number', async () => {
  const { log, told } = recordingLog()
  let nowMs = 0
  const services = new ServiceLog({ log, nowMs: () => nowMs })
  const lose = (name: string) => services.note(change(view([service(name, 1)]), name, service(name, 0)))
  for (let number = 0; number < 100; number++) lose(`web-${number}`)
  nowMs = 61_000
  lose('last')
  const warnings = () => told.filter(({ level }) => level === 'warn')
  await until('the warnings', () => warnings().length === 22)
  expect(warnings().map(({ message }) => message)).toContain(
    'More Services lost their last endpoint in the last minute',
  )
  expect(warnings().find(({ message }) => message.startsWith('More'))?.fields).toEqual({ services: 80 })
})
