import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Explanation } from '@kpng/api'
import { afterEach, expect, test } from 'vitest'
import { Commands } from './testing/commands.js'

// Questions to running processes, as users ask them.

const commands = new Commands()
afterEach(() => commands.cleanUp())

const state = `services:
- service:
    namespace: default
    name: web
    type: ClusterIP
    ips: { clusterips: { v4: [127.97.1.7] }, externalips: {} }
    ports: [{ name: http, protocol: 1, port: 18087, targetport: 8080 }]
    internaltraffictolocal: true
  endpoints:
  - { endpoint: { ips: { v4: [127.10.0.1] } }, conditions: { ready: true }, topology: { node: node-b } }
`

const quietAgent = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
healthzBindAddress: ""
metricsBindAddress: ""
oomScoreAdj: 0
conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s }
`

async function core(...source: string[]) {
  const running = commands.start('kpng', ...source, 'to-api', '--listen', '127.0.0.1:0')
  await running.says('Serving the kpng API')
  return { running, api: /listen="tcp:\/\/([^"]+)"/.exec(running.stderr)?.[1] as string }
}

test('a node behind a relay says why an endpoint is left out, and what is missing once the core is gone', async () => {
  const folder = commands.folder()
  writeFileSync(join(folder, 'state.yaml'), state)
  writeFileSync(join(folder, 'config.yaml'), quietAgent)
  const { api: upstream } = await core('file', '-i', join(folder, 'state.yaml'))
  const { running: relay, api } = await core('api', '--api', upstream)
  const socket = join(folder, 'agent.sock')
  const node = commands.start(
    ...['kpng', 'local', '--api', api, '--node-name', 'node-a', 'to-userspacelin', '--capture', 'none', '-v', '2'],
    ...['--agent-socket', socket, '--config', join(folder, 'config.yaml')],
  )
  await node.says('Synced')
  const explain = async () => {
    const { stdout, stderr } = await commands.run('kpng', 'explain', 'web', '--agent-socket', socket, '-o', 'json')
    expect(stderr).toBe('')
    return JSON.parse(stdout) as Explanation
  }
  const { answer, service } = await explain()
  expect(service?.endpoints.map(({ reason }) => reason)).toEqual(['not-local'])
  expect(answer).toContain('the traffic policy is Local, and it is on another node')

  await relay.stop()
  const { coreProblem, ...without } = await explain()
  expect(coreProblem).toMatch(/^The core at 127\.0\.0\.1:\d+ did not say which endpoints are left out: /)
  expect(without).not.toHaveProperty('service')
})
