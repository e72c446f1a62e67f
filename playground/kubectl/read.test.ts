import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Playground, type Pod, startPlayground } from '../index.js'
import { pod, service } from '../testing/client.js'
import { findKubectl, Kubectl } from '../testing/kubectl.js'

describe.skipIf(!findKubectl())('kubectl reads', () => {
  let playground: Playground
  let kubectl: Kubectl

  beforeAll(async () => {
    playground = await startPlayground()
    kubectl = new Kubectl(playground)
    playground.objects.apply(
      service(
        'web',
        { type: 'NodePort', selector: { app: 'web' }, ports: [{ port: 80, nodePort: 30080, targetPort: 8080 }] },
        { labels: { app: 'web' } },
      ),
    )
    playground.objects.apply(pod('web-1', { app: 'web' }))
    await playground.objects.waitFor<Pod>('Pod', 'web-1', (of) => of?.status?.podIP !== undefined)
  })
  afterAll(async () => {
    kubectl.close()
    await playground.close()
  })
  const columns = (table: string) =>
    table
      .split('\n')[0]
      ?.trim()
      .split(/\s{2,}/)

  it.each([
    ['services', ['NAME', 'TYPE', 'CLUSTER-IP', 'EXTERNAL-IP', 'PORT(S)', 'AGE'], ['SELECTOR']],
    ['pods', ['NAME', 'READY', 'STATUS', 'RESTARTS', 'AGE'], ['IP', 'NODE', 'NOMINATED NODE', 'READINESS GATES']],
    [
      'nodes',
      ['NAME', 'STATUS', 'ROLES', 'AGE', 'VERSION'],
      ['INTERNAL-IP', 'EXTERNAL-IP', 'OS-IMAGE', 'KERNEL-VERSION', 'CONTAINER-RUNTIME'],
    ],
    ['namespaces', ['NAME', 'STATUS', 'AGE'], []],
    ['endpoints', ['NAME', 'ENDPOINTS', 'AGE'], []],
    ['endpointslices', ['NAME', 'ADDRESSTYPE', 'PORTS', 'ENDPOINTS', 'AGE'], []],
    ['servicecidrs', ['NAME', 'CIDRS', 'AGE'], []],
    ['events', ['LAST SEEN', 'TYPE', 'REASON', 'OBJECT', 'MESSAGE'], undefined],
  ])('get %s has the columns of a real cluster', async (resource, narrow, wide) => {
    expect(columns(await kubectl.ok(['get', resource]))).toEqual(narrow)
    if (wide) expect(columns(await kubectl.ok(['get', resource, '-o', 'wide']))).toEqual([...narrow, ...wide])
  })
  it('get -o wide shows the values', async () => {
    expect(await kubectl.ok(['get', 'svc', 'web', '-o', 'wide'])).toMatch(
      /web +NodePort +127\.96\.\d+\.\d+ +<none> +80:30080\/TCP +\d+s +app=web/,
    )
    expect(await kubectl.ok(['get', 'pods', '-o', 'wide'])).toMatch(
      /web-1 +1\/1 +Running +0 +\d+s +127\.10\.\d+\.\d+ +playground/,
    )
  })
  it('get -o yaml, json, name, jsonpath, custom-columns, -A, -l, --field-selector, --sort-by', async () => {
    expect(await kubectl.ok(['get', 'svc', 'web', '-o', 'yaml'])).toMatch(/^apiVersion: v1\nkind: Service\n/)
    expect((await kubectl.json(['get', 'svc', 'web'])).spec.ports[0]).toMatchObject({
      nodePort: 30080,
      protocol: 'TCP',
    })
    expect((await kubectl.json(['get', 'svc'])).kind).toBe('List')
    expect(await kubectl.ok(['get', 'svc', '-o', 'name'])).toBe('service/kubernetes\nservice/web\n')
    expect(await kubectl.ok(['get', 'svc', 'web', '-o', 'jsonpath={.spec.ports[0].port}'])).toBe('80')
    expect(await kubectl.ok(['get', 'svc', '-o', 'custom-columns=N:.metadata.name', '--no-headers'])).toBe(
      'kubernetes\nweb\n',
    )
    expect(await kubectl.ok(['get', 'svc', '-A', '--sort-by', '.metadata.name'])).toMatch(/NAMESPACE +NAME/)
    expect(await kubectl.ok(['get', 'svc', '-l', 'app in (web),!nope', '-o', 'name'])).toBe('service/web\n')
    expect(
      await kubectl.ok([
        'get',
        'pods',
        '--field-selector',
        'spec.nodeName=playground,status.phase=Running',
        '-o',
        'name',
      ]),
    ).toBe('pod/web-1\n')
    expect(await kubectl.ok(['get', 'all', '-o', 'name'])).toContain('pod/web-1')
    expect(await kubectl.ok(['get', 'svc', 'web', '--subresource=status', '-o', 'name'])).toBe('service/web\n')
  })
  it('get in pages', async () => {
    expect((await kubectl.ok(['get', 'ns', '--chunk-size', '1', '-o', 'name'])).split('\n')).toHaveLength(5)
  })
  it.each([['-w'], ['-w', '-o', 'name']])('get %s', async (...flags) => {
    const child = kubectl.start(['get', 'svc', ...flags.flat(), '--request-timeout', '10s'])
    let seen = ''
    const wait = async (text: string) => {
      for (let tries = 0; tries < 200 && !seen.includes(text); tries++)
        await new Promise((resolve) => setTimeout(resolve, 20))
      expect(seen).toContain(text)
    }
    child.stdout?.on('data', (chunk) => {
      seen += chunk
    })
    await wait('web')
    playground.objects.apply(service('watched'))
    await wait('watched')
    playground.objects.delete('Service', 'watched')
    child.kill()
  })
  it.each([
    ['svc', 'web', [/Type: +NodePort/, /NodePort: +<unset> +30080\/TCP/, /Endpoints: +127\.10\.\d+\.\d+:8080/]],
    ['pod', 'web-1', [/Status: +Running/, /Ready +True/, /Successfully assigned default\/web-1 to playground/]],
    ['node', 'playground', [/Ready +True/, /default +web-1/]],
    ['ns', 'default', [/Status: +Active/]],
    ['endpoints', 'web', [/Subsets:\n +Addresses: +127\.10\./]],
    ['endpointslice', '', [/AddressType: +IPv4/, /Ready: +true/]],
  ])('describe %s %s', async (resource, name, patterns) => {
    const text = await kubectl.ok(['describe', resource, ...(name ? [name] : [])])
    for (const pattern of patterns) expect(text).toMatch(pattern)
  })
  it('api-resources, api-versions, version, auth', async () => {
    const resources = await kubectl.ok(['api-resources'])
    for (const line of [
      /services +svc +v1 +true +Service/,
      /endpointslices +discovery.k8s.io\/v1 +true +EndpointSlice/,
      /servicecidrs +networking.k8s.io\/v1 +false +ServiceCIDR/,
    ]) {
      expect(resources).toMatch(line)
    }
    expect((await kubectl.ok(['api-versions'])).split('\n')).toContain('discovery.k8s.io/v1')
    expect(await kubectl.ok(['version'])).toContain('+kpng')
    expect(await kubectl.ok(['auth', 'can-i', 'list', 'pods'])).toBe('yes\n')
  })
  it.each([
    ['service.spec.ports', /targetPort\s+<string>|targetPort\s+<IntOrString>/],
    ['endpointslice.endpoints.conditions', /terminating\s+<boolean>/],
    ['pod.spec.containers.ports', /containerPort\s+<integer> -required-/],
    ['servicecidr.spec', /cidrs\s+<\[\]string>/],
    ['node.status.addresses', /address\s+<string> -required-/],
    ['deployment.spec', /replicas\s+<integer>/],
  ])('explain %s', async (path, pattern) => {
    expect(await kubectl.ok(['explain', path])).toMatch(pattern)
    expect(await kubectl.ok(['explain', path, '--recursive'])).toMatch(pattern)
  })
  it('errors read as those of a real server', async () => {
    expect(await kubectl.refused(['get', 'svc', 'nope'])).toBe(
      'Error from server (NotFound): services "nope" not found\n',
    )
    expect(await kubectl.refused(['get', 'endpointslices', 'nope'])).toBe(
      'Error from server (NotFound): endpointslices.discovery.k8s.io "nope" not found\n',
    )
    expect(await kubectl.refused(['get', 'pods', '--field-selector', 'spec.color=red'])).toContain(
      'field label not supported: spec.color',
    )
    expect(await kubectl.refused(['get', 'unicorns'])).toContain(`the server doesn't have a resource type "unicorns"`)
    expect(await kubectl.refused(['--token', 'wrong', 'get', 'svc'])).toMatch(/Unauthorized|logged in/)
  })
})
