import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { FrontendTable } from '@kpng/dataplane'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { fullSync, ips, tcp, view as viewOf } from '../../dataplane/testing/objects.js'
import { fuzzing } from '../../scripts/testing/damaged.js'
import { Activity, agentApi } from './index.js'

// Whatever is asked, there is an answer, and it does not blame the agent.

const view = viewOf([{ name: 'web', ips: { clusterIps: ips('10.96.0.10') }, ports: [tcp(80)], endpoints: [] }])
const frontends = new FrontendTable()
frontends.apply(view, fullSync, { families: ['IPv4', 'IPv6'], addresses: [] })
const activity = new Activity()
activity.onSync({ view, changes: fullSync, startedAtMs: 0, durationMs: 1, steps: [] })
const api = agentApi({ nodeName: 'a', version: '1', mode: 'nftables', activity, frontends })
const server = createServer(api.handler)

beforeAll(() => new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve)))
afterAll(() => {
  api.close()
  server.closeAllConnections()
  server.close()
})

const ask = (path: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const { port } = server.address() as AddressInfo
    const asked = request({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      resolve(response.statusCode ?? 0)
      response.destroy()
    })
    asked.on('error', reject)
    asked.end()
  })

const odd = fc.oneof(
  fc.constantFrom(
    '',
    '%',
    '%00',
    '%ff',
    '..',
    '10.96.0.10',
    '10.96.0.10:80',
    '[::1]:80',
    'default/web',
    'web',
    'a'.repeat(3000),
  ),
  fc.constantFrom('TCP', 'tcp', '999999', '-1', '1e9', 'true', '1.2.3.4/99', 'fe80::1%25eth0', '&', '?', '#', '/'),
  fc.string({ maxLength: 20 }).map(encodeURIComponent.bind(undefined) as (text: string) => string),
)
const path = fc
  .record({
    name: fc.constantFrom(
      'status',
      'services',
      'endpoints',
      'frontends',
      'changes',
      'explain',
      'connections',
      'stream',
      'x',
    ),
    query: fc.array(
      fc.tuple(fc.constantFrom('namespace', 'address', 'service', 'from', 'protocol', 'port', 'x'), odd),
      { maxLength: 4 },
    ),
    tail: fc.constantFrom('', '', '', '/', '//', '?', '%'),
  })
  .map(({ name, query, tail }) => `/v1/${name}${tail}?${query.map(([key, value]) => `${key}=${value}`).join('&')}`)
  // Node's client refuses to send these.
  .filter((text) => /^[\x21-\x7e]+$/.test(text))

it('every request is answered', async () => {
  await fc.assert(
    fc.asyncProperty(path, async (text) => {
      expect(await ask(text)).toBeLessThan(500)
    }),
    fuzzing<string>(['//', '/v1/explain?address=[', '/v1/stream?%']),
  )
})
