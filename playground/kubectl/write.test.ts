import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Playground, type Pod, startPlayground } from '../index.js'
import { pod, service } from '../testing/client.js'
import { findKubectl, Kubectl } from '../testing/kubectl.js'

describe.skipIf(!findKubectl())('kubectl writes', () => {
  let playground: Playground
  let kubectl: Kubectl
  let folder: string

  beforeAll(async () => {
    playground = await startPlayground({ maxGracePeriodSeconds: 1, serviceCidrs: ['127.96.0.0/16', 'fd00:96::/112'] })
    kubectl = new Kubectl(playground)
    folder = mkdtempSync(join(tmpdir(), 'kpng-editor-'))
  })
  afterAll(async () => {
    kubectl.close()
    rmSync(folder, { recursive: true, force: true })
    await playground.close()
  })
  const web = (targetPort: number, extra: object = {}) =>
    service('web', {
      selector: { app: 'web' },
      ports: [
        { name: 'http', port: 80, targetPort },
        { name: 'dns', port: 53, protocol: 'UDP' },
      ],
      ...extra,
    })
  const spec = async (name: string) => (await kubectl.json(['get', 'svc', name])).spec

  it('apply: created, unchanged, configured; removed fields go', async () => {
    const labelled = { ...web(8080), metadata: { name: 'web', labels: { a: 'b' } } }
    expect(await kubectl.ok(['apply', '-f', '-'], labelled)).toBe('service/web created\n')
    expect(await kubectl.ok(['apply', '-f', '-'], labelled)).toBe('service/web unchanged\n')
    expect(await kubectl.ok(['apply', '-f', '-'], web(9090))).toBe('service/web configured\n')
    const { metadata, spec } = await kubectl.json(['get', 'svc', 'web'])
    expect(spec.ports[0].targetPort).toBe(9090)
    expect(metadata.labels).toBeUndefined()
  })
  it('diff: only what would change', async () => {
    expect((await kubectl.run(['diff', '-f', '-'], web(9090))).code).toBe(0)
    const { code, stdout } = await kubectl.run(['diff', '-f', '-'], web(7070))
    expect(code).toBe(1)
    expect(stdout).toMatch(/-\s+targetPort: 9090\n\+\s+targetPort: 7070/)
    expect((await kubectl.run(['diff', '--server-side', '--force-conflicts', '-f', '-'], web(7070))).stdout).toContain(
      '+    targetPort: 7070',
    )
  })
  it('apply --validate=strict refuses, warn warns, about fields that do not exist', async () => {
    const wrong = web(9090, { selectr: { app: 'x' } })
    expect(await kubectl.refused(['apply', '--validate=strict', '-f', '-'], wrong)).toContain(
      'strict decoding error: unknown field "spec.selectr"',
    )
    expect((await kubectl.run(['apply', '--validate=warn', '-f', '-'], wrong)).stderr).toContain(
      'Warning: unknown field "spec.selectr"',
    )
    const mistyped = web(9090, { ports: [{ port: 'eighty' }] })
    expect(await kubectl.refused(['create', '-f', '-'], { ...mistyped, metadata: { name: 'typo' } })).toMatch(
      /cannot unmarshal string into Go struct field|invalid type/,
    )
  })
  it('apply --server-side: takes over from apply, conflicts, forces', async () => {
    expect(await kubectl.ok(['apply', '--server-side', '-f', '-'], web(9090))).toBe('service/web serverside-applied\n')
    const conflict = await kubectl.refused(['apply', '--server-side', '--field-manager=other', '-f', '-'], web(6060))
    expect(conflict).toContain(
      'Apply failed with 1 conflict: conflict with "kubectl" using v1: .spec.ports[port=80,protocol="TCP"].targetPort',
    )
    await kubectl.ok(['apply', '--server-side', '--field-manager=other', '--force-conflicts', '-f', '-'], web(6060))
    expect((await spec('web')).ports[0].targetPort).toBe(6060)
    const created = await kubectl.ok(['apply', '--server-side', '-f', '-'], service('fresh'))
    expect(created).toBe('service/fresh serverside-applied\n')
    const fields = await kubectl.ok(['get', 'svc', 'fresh', '-o', 'yaml', '--show-managed-fields'])
    expect(fields).toMatch(/manager: kubectl\n\s+operation: Apply/)
  })
  it('create, with dry runs', async () => {
    expect(await kubectl.ok(['create', '-f', '-', '--dry-run=server', '-o', 'name'], service('dry'))).toBe(
      'service/dry\n',
    )
    expect(await kubectl.refused(['get', 'svc', 'dry'])).toContain('not found')
    expect(await kubectl.ok(['create', '-f', '-'], service('made'))).toBe('service/made created\n')
    expect(await kubectl.refused(['create', '-f', '-'], service('made'))).toContain('services "made" already exists')
    expect(await kubectl.ok(['create', 'namespace', 'demo'])).toBe('namespace/demo created\n')
    expect(await kubectl.ok(['create', 'service', 'nodeport', 'np', '--tcp=80:8080', '--node-port=30123'])).toBe(
      'service/np created\n',
    )
    expect(
      await kubectl.refused(['create', 'service', 'nodeport', 'np2', '--tcp=80:8080', '--node-port=30123']),
    ).toContain('provided port is already allocated')
    expect(await kubectl.ok(['create', 'service', 'clusterip', 'head', '--clusterip=None', '--tcp=80'])).toContain(
      'created',
    )
    expect(await kubectl.ok(['create', 'service', 'externalname', 'ext', '--external-name=example.com'])).toContain(
      'created',
    )
    expect(await kubectl.refused(['create', '-n', 'nowhere', '-f', '-'], service('x'))).toContain(
      'namespaces "nowhere" not found',
    )
    expect(await kubectl.ok(['expose', 'service', 'made', '--name=exposed', '--port=81', '--selector=a=b'])).toBe(
      'service/exposed exposed\n',
    )
    expect(await kubectl.ok(['replace', '-f', '-'], service('made', { ports: [{ port: 82 }] }))).toBe(
      'service/made replaced\n',
    )
  })
  it('create refuses in the words of the API server', async () => {
    const refused = await kubectl.refused(['create', '-f', '-'], service('x', { ports: [{ port: 0, targetPort: 80 }] }))
    expect(refused).toContain(
      'The Service "x" is invalid: spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive',
    )
  })
  it('create for both IP families', async () => {
    await kubectl.ok(['create', '-f', '-'], service('dual', { ipFamilyPolicy: 'RequireDualStack' }))
    expect((await spec('dual')).clusterIPs).toEqual([
      expect.stringMatching(/^127\.96\./),
      expect.stringMatching(/^fd00:96::/),
    ])
  })
  it('edit', async () => {
    const editor = join(folder, 'editor.mjs')
    writeFileSync(
      editor,
      `import { readFileSync, writeFileSync } from 'node:fs'
const path = process.argv.at(-1)
writeFileSync(path, readFileSync(path, 'utf8').replace('port: 82', 'port: 83'))
`,
    )
    const script = join(folder, 'editor.sh')
    writeFileSync(script, `#!/bin/sh\nexec "${process.execPath}" "${editor}" "$1"\n`)
    chmodSync(script, 0o755)
    expect(await kubectl.ok(['edit', 'svc', 'made'], undefined, { EDITOR: script, KUBE_EDITOR: script })).toBe(
      'service/made edited\n',
    )
    expect((await spec('made')).ports[0].port).toBe(83)
  })
  it('patch: strategic, merge, JSON, and the status subresource', async () => {
    await kubectl.ok(['patch', 'svc', 'web', '-p', '{"spec":{"ports":[{"port":80,"targetPort":1234}]}}'])
    expect((await spec('web')).ports).toHaveLength(2)
    await kubectl.ok([
      'patch',
      'svc',
      'web',
      '--type=merge',
      '-p',
      '{"spec":{"type":"LoadBalancer","sessionAffinity":"ClientIP"}}',
    ])
    await kubectl.ok([
      'patch',
      'svc',
      'web',
      '--type=json',
      '-p',
      '[{"op":"replace","path":"/spec/externalTrafficPolicy","value":"Local"}]',
    ])
    expect(await spec('web')).toMatchObject({
      healthCheckNodePort: expect.any(Number),
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 10800 } },
    })
    await kubectl.ok([
      'patch',
      'svc',
      'web',
      '--subresource=status',
      '--type=merge',
      '-p',
      '{"status":{"loadBalancer":{"ingress":[{"ip":"127.0.0.9"}]}}}',
    ])
    expect(await kubectl.ok(['get', 'svc', 'web'])).toMatch(/LoadBalancer +127\.96\.\S+ +127\.0\.0\.9/)
    // The main door does not write the status.
    await kubectl.ok(['patch', 'svc', 'web', '--type=merge', '-p', '{"status":{"loadBalancer":null}}'])
    expect((await kubectl.json(['get', 'svc', 'web'])).status.loadBalancer.ingress).toHaveLength(1)
    expect(
      await kubectl.refused([
        'patch',
        'svc',
        'web',
        '--type=json',
        '-p',
        '[{"op":"test","path":"/spec/type","value":"X"}]',
      ]),
    ).toContain('testing path /spec/type failed')
  })
  it('label, annotate, taint, cordon', async () => {
    expect(await kubectl.ok(['label', 'svc', 'web', 'service.kubernetes.io/service-proxy-name=other'])).toBe(
      'service/web labeled\n',
    )
    expect(await kubectl.ok(['label', 'svc', 'web', 'service.kubernetes.io/service-proxy-name-'])).toMatch(
      /unlabeled|labeled/,
    )
    expect(await kubectl.ok(['annotate', 'svc', 'web', 'note=hello'])).toMatch(/^service\/web annotated?\n$/)
    expect(await kubectl.refused(['label', 'svc', 'web', 'a=b c'])).toMatch(/a valid label must be|is invalid/)
    await kubectl.ok(['taint', 'nodes', 'playground', 'a=b:NoSchedule'])
    await kubectl.ok(['taint', 'nodes', 'playground', 'a-'])
    await kubectl.ok(['cordon', 'playground'])
    expect(await kubectl.ok(['get', 'nodes'])).toContain('Ready,SchedulingDisabled')
    await kubectl.ok(['uncordon', 'playground'])
  })
  it('run and delete a pod, waiting until it has drained; by label; --force', async () => {
    await kubectl.ok(['run', 'one', '--image=any', '--port=8080'])
    expect(await kubectl.ok(['wait', '--for=condition=Ready', 'pod/one', '--timeout=10s'])).toBe(
      'pod/one condition met\n',
    )
    expect(await kubectl.ok(['label', 'pod', 'one', 'playground.kpng.io/ready=false'])).toBe('pod/one labeled\n')
    await kubectl.ok(['wait', '--for=condition=Ready=false', 'pod/one', '--timeout=10s'])
    expect(await kubectl.ok(['delete', 'pod', 'one'])).toMatch(/pod "one" deleted/)
    expect(playground.objects.get('Pod', 'one')).toBeUndefined()
    playground.objects.apply(pod('two', { group: 'g' }))
    playground.objects.apply(pod('three', { group: 'g' }))
    await playground.objects.waitFor<Pod>('Pod', 'three', (of) => of?.status?.phase === 'Running')
    expect((await kubectl.ok(['delete', 'pods', '-l', 'group=g', '--wait=false'])).split('\n')).toHaveLength(3)
    await kubectl.ok(['delete', 'pods', '-l', 'group=g', '--force', '--grace-period=0', '--ignore-not-found'])
    expect(playground.objects.list('Pod')).toEqual([])
  })
  it('delete a namespace with everything in it, but not default', async () => {
    await kubectl.ok(['create', '-n', 'demo', '-f', '-'], service('inside'))
    expect(await kubectl.ok(['delete', 'namespace', 'demo'])).toMatch(/namespace "demo" deleted/)
    expect(playground.objects.list('Service', { namespace: 'demo' })).toEqual([])
    expect(await kubectl.refused(['delete', 'ns', 'default'])).toContain(
      'namespaces "default" is forbidden: this namespace may not be deleted',
    )
    expect(await kubectl.ok(['delete', 'svc', '--all'])).toContain('service "web" deleted')
  })
  it('a Deployment is the way to scale', async () => {
    await kubectl.ok(['create', 'deployment', 'echo', '--image=any', '--replicas=2', '--port=8080'])
    await kubectl.ok(['expose', 'deployment', 'echo', '--port=80', '--target-port=8080'])
    expect(await kubectl.ok(['rollout', 'status', 'deployment/echo', '--timeout=10s'])).toContain(
      'successfully rolled out',
    )
    expect(await kubectl.ok(['scale', 'deployment/echo', '--replicas=3'])).toBe('deployment.apps/echo scaled\n')
    await kubectl.ok(['rollout', 'status', 'deployment/echo', '--timeout=10s'])
    expect(await kubectl.ok(['get', 'deployment', 'echo'])).toMatch(/echo +3\/3 +3 +3/)
    expect(await kubectl.ok(['delete', 'deployment', 'echo', '--cascade=foreground'])).toMatch(
      /deployment.apps "echo" deleted/,
    )
  })
})
