import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Playground, type Pod, type Secret, startPlayground } from '../index.js'
import { pod } from '../testing/client.js'
import { findKubectl, Kubectl } from '../testing/kubectl.js'

// Files as people have them: with a ConfigMap beside the Deployment, and with kinds that the playground lacks.

const everyKind =
  'ConfigMap, Deployment, EndpointSlice, Endpoints, Event, Namespace, Node, Pod, Secret, Service, ServiceAccount, ServiceCIDR'

const file = `
apiVersion: v1
kind: ConfigMap
metadata: { name: settings }
data: { colour: blue }
---
apiVersion: v1
kind: Secret
metadata: { name: password }
stringData: { word: hello }
---
apiVersion: v1
kind: ServiceAccount
metadata: { name: shop }
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: shop }
spec: {}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: { name: shop }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: shop }
spec:
  replicas: 0
  selector: { matchLabels: { app: shop } }
  template:
    metadata: { labels: { app: shop } }
    spec:
      serviceAccountName: shop
      containers:
        - { name: shop, image: shop, envFrom: [{ configMapRef: { name: settings } }] }
---
apiVersion: v1
kind: Service
metadata: { name: shop }
spec: { selector: { app: shop }, ports: [{ port: 8080 }] }
`

describe.skipIf(!findKubectl())('kubectl with files and commands that a real cluster takes', () => {
  let playground: Playground
  let kubectl: Kubectl
  beforeAll(async () => {
    playground = await startPlayground({ maxGracePeriodSeconds: 1 })
    kubectl = new Kubectl(playground)
    playground.objects.apply(pod('one'))
    await playground.objects.waitFor<Pod>('Pod', 'one', (of) => of?.status?.phase === 'Running')
  })
  afterAll(async () => {
    kubectl.close()
    await playground.close()
  })

  it.each([
    ['apply', 'created'],
    ['apply --server-side --force-conflicts', 'serverside-applied'],
  ])('%s: takes everything but the kinds that the playground lacks, and names those', async (command, done) => {
    const { code, stdout, stderr } = await kubectl.run([...command.split(' '), '-f', '-'], file)
    expect(code).toBe(1)
    expect(stdout.trim().split('\n')).toEqual([
      `configmap/settings ${done}`,
      `secret/password ${done}`,
      `serviceaccount/shop ${done}`,
      `deployment.apps/shop ${done}`,
      `service/shop ${done}`,
    ])
    expect(stderr).toContain(`the playground has no Ingress; it has ${everyKind}`)
    expect(stderr).toContain(`Warning: the playground has only these kinds: ${everyKind}`)
    expect(stderr).toContain('no matches for kind "Certificate" in version "cert-manager.io/v1"')
  })
  it('ConfigMaps, Secrets and ServiceAccounts are made, listed and described', async () => {
    await kubectl.ok(['create', 'configmap', 'made', '--from-literal=a=b'])
    await kubectl.ok(['create', 'secret', 'generic', 'made', '--from-literal=a=b'])
    await kubectl.ok(['create', 'serviceaccount', 'made'])
    expect(await kubectl.ok(['get', 'cm,secrets,sa', '--no-headers'])).toMatch(
      /configmap\/made +1 .*secret\/made +Opaque +1 .*serviceaccount\/made +0 /s,
    )
    expect(playground.objects.get<Secret>('Secret', 'made')?.data).toEqual({ a: 'Yg==' })
    expect(await kubectl.ok(['describe', 'secret', 'password'])).toContain('word:  5 bytes')
    expect(await kubectl.ok(['describe', 'configmap', 'settings'])).toContain('blue')
  })
  it('bad ones are refused by field', async () => {
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'bad' } }
    expect(await kubectl.refused(['apply', '-f', '-'], { ...secret, data: { 'a b': 'x' } })).toMatch(
      /data\[a b\]: Invalid value.*config key.*data\[a b\]: Invalid value: "x": illegal base64 data/s,
    )
    const fixed = { ...secret, kind: 'ConfigMap', data: { a: '1' }, immutable: true }
    await kubectl.ok(['apply', '-f', '-'], fixed)
    expect(await kubectl.refused(['apply', '-f', '-'], { ...fixed, data: { a: '2' } })).toContain(
      'data: Forbidden: field is immutable',
    )
  })
  it.each(['logs', 'attach', 'debug --image=x', 'port-forward :8080', 'exec -- ls'])(
    '%s says what the playground lacks',
    async (command) => {
      const [verb = '', ...rest] = command.split(' ')
      const said = await kubectl.refused([verb, 'one', ...rest])
      const missing = { logs: 'pod logs', debug: 'ephemeral containers' }[verb] ?? verb
      expect(said).toContain(`the playground has no ${missing}`)
      if (verb === 'port-forward') expect(said).toMatch(/call the pod itself at http:\/\/127\.10\.\d+\.\d+:8080/)
    },
  )
  it('kinds that it lacks are named when they are asked for, and not listed', async () => {
    expect(await kubectl.refused(['get', 'sts'])).toContain('the playground has no StatefulSet; it has ConfigMap')
    expect(await kubectl.refused(['create', 'job', 'x', '--image=y'])).toContain('the playground has no Job')
    expect(await kubectl.ok(['api-resources', '-o', 'name'])).not.toMatch(/statefulsets|jobs|ingresses/)
    expect((await kubectl.run(['get', 'all'])).stderr).toBe('')
  })
  it('version: kubectl does not warn about the distance between the versions', async () => {
    const { stdout, stderr } = await kubectl.run(['version'])
    const minor = Number(/Client Version: v1\.(\d+)/.exec(stdout)?.[1])
    if (minor >= 32 && minor <= 34) expect(stderr).toBe('')
  })
})
