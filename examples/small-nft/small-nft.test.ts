import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Commands } from '../../cli/testing/commands.js'
import { enterNewNamespace, whySkipped } from '../../linux/testing/index.js'
import { compile } from '../testing/compile.js'

const why = whySkipped('examples/small-nft', 'nft')

/** What is answered at an address, or the code of the error. */
const ask = (host: string, port: number): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 5000 })
    socket.on('data', (chunk) => {
      socket.destroy()
      resolve(String(chunk))
    })
    socket.on('error', (error) => resolve((error as NodeJS.ErrnoException).code ?? ''))
    socket.on('timeout', () => {
      socket.destroy()
      resolve('timeout')
    })
  })

const manifests = (endpoints: readonly string[]) => `
apiVersion: v1
kind: Service
metadata: { name: web, namespace: default }
spec: { clusterIP: 10.96.0.1, clusterIPs: [10.96.0.1], ports: [{ name: http, port: 80, targetPort: 8080 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, namespace: default, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: http, port: 8080, protocol: TCP }]
endpoints: ${JSON.stringify(endpoints.map((ip) => ({ addresses: [ip], nodeName: 'here' })))}
`

describe.skipIf(why !== undefined)('the small data plane of docs/write-a-backend.md', () => {
  const commands = new Commands()
  const scratch = commands.folder()
  const socket = `unix://${join(scratch, 'kpng.sock')}`
  const file = join(scratch, 'manifests.yaml')
  let program: ChildProcess | undefined
  let compiled = ''
  const servers = ['10.9.9.1', '10.9.9.2'].map((ip) => ({ ip, server: createServer((client) => client.end(ip)) }))

  beforeAll(async () => {
    await enterNewNamespace()
    const ip = (...args: string[]) => execFileSync('ip', args)
    ip('link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth1')
    for (const each of servers) ip('address', 'add', `${each.ip}/24`, 'dev', 'eth0')
    for (const device of ['eth0', 'eth1']) ip('link', 'set', device, 'up')
    ip('route', 'add', 'default', 'dev', 'eth0')
    for (const each of servers) await new Promise<void>((done) => each.server.listen(8080, each.ip, done))
    compiled = await compile('small-nft')
  })
  afterAll(async () => {
    program?.kill('SIGKILL')
    await commands.cleanUp()
    for (const { server } of servers) server.close()
  })

  test('serves a Service, follows its endpoints, refuses without one', async () => {
    writeFileSync(file, manifests(['10.9.9.1']))
    commands.start('kpng', 'file', '-i', file, 'to-api', '--listen', socket)
    const args = [compiled, '--api', socket, '--node-name', 'here']
    program = spawn(process.execPath, args, { stdio: 'inherit' })
    const answers = (expected: string) => expect.poll(() => ask('10.96.0.1', 80), { timeout: 90_000 }).toBe(expected)
    await answers('10.9.9.1')
    writeFileSync(file, manifests(['10.9.9.2']))
    await answers('10.9.9.2')
    writeFileSync(file, manifests([]))
    await answers('ECONNREFUSED')
    writeFileSync(file, manifests(['10.9.9.1']))
    await answers('10.9.9.1')
  })
})
