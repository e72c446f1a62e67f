import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import '../cli/testing/compiled.js'
import { type CommandLine, ofPowerShell, ofUnit } from './testing/command-lines.js'
import { customResourceFaults } from './testing/custom-resources.js'
import { schemaFaults, schemaOf } from './testing/kubernetes-schema.js'
import { hasKubectl, manifestsIn, render, renderWith } from './testing/kustomize.js'
import { type Manifest, nameOf } from './testing/manifest.js'
import { refusal } from './testing/parse.js'
import { isWorkload, referenceFaults, type Workload } from './testing/references.js'
import { valueFaults } from './testing/values.js'

const here = new URL('.', import.meta.url).pathname
const root = join(here, '..')
const overlay = (name: string) => join(here, 'overlays', name)
const component = (name: string) => join(here, 'components', name)
const foldersIn = (folder: string) => readdirSync(join(here, folder)).sort()

if (!hasKubectl) console.warn('kubectl is missing: the manifests are not rendered. Install it to have them checked.')
const hasSystemd = spawnSync('systemd-analyze', ['--version'], { stdio: 'ignore' }).status === 0
if (!hasSystemd)
  console.warn('systemd-analyze is missing: the units are not verified. Install systemd to have them checked.')

const address = {
  configMapGenerator: [
    { name: 'kpng', behavior: 'merge', literals: ['KUBERNETES_SERVICE_HOST=10.0.0.5', 'KUBERNETES_SERVICE_PORT=6443'] },
  ],
}

/** What operators apply: each overlay, alone and with what may be added to it. */
const renderings: readonly (readonly [string, () => Manifest[]])[] = [
  ...foldersIn('overlays').map((name) => [name, () => render(overlay(name))] as const),
  ...['one-process', 'two-containers', 'central'].map(
    (name) =>
      [
        `${name} with metrics, conntrack and labelled-nodes`,
        () => renderWith(overlay(name), ['metrics', 'conntrack', 'labelled-nodes'].map(component)),
      ] as const,
  ),
  ...['one-process', 'two-containers', 'central'].map(
    (name) =>
      [
        `${name} with pod-monitor and alerts`,
        () => renderWith(overlay(name), ['pod-monitor', 'alerts'].map(component)),
      ] as const,
  ),
  ...['iptables', 'ipvs'].map(
    (name) =>
      [
        `one-process with ${name}`,
        () => renderWith(overlay('one-process'), [name, 'conntrack', 'dashboard'].map(component)),
      ] as const,
  ),
  ...['two-containers', 'central'].map(
    (name) => [`${name} with dashboard`, () => renderWith(overlay(name), [component('dashboard')])] as const,
  ),
  ['one-process with ebpf', () => renderWith(overlay('one-process'), ['ebpf', 'metrics'].map(component))],
  ['specialised with labelled-nodes', () => renderWith(overlay('specialised'), [component('labelled-nodes')])],
  ['central with cert-manager', () => renderWith(overlay('central'), [component('cert-manager')])],
  ['central with core-in-pod-network', () => renderWith(overlay('central'), [component('core-in-pod-network')])],
  [
    'windows with winkernel, pod-monitor and alerts',
    () => renderWith(overlay('windows'), ['winkernel', 'pod-monitor', 'alerts'].map(component)),
  ],
  ['windows with labelled-nodes', () => renderWith(overlay('windows'), [component('labelled-nodes')])],
  ['the base with api-server', () => renderWith(join(here, 'base'), [component('api-server')], address)],
]

const rendered = hasKubectl ? renderings.map(([name, manifests]) => ({ name, all: manifests() })) : []

/** Objects that are the same in many overlays are checked once: the compiler takes a second for them all. */
const schemaFaultsOf = (() => {
  const all = rendered.flatMap((one) => one.all).filter(({ apiVersion }) => schemaOf(apiVersion))
  const texts = [...new Set(all.map((manifest) => JSON.stringify(manifest)))]
  const faults = schemaFaults(texts.map((text) => JSON.parse(text) as Manifest))
  const known = new Map(texts.map((text, index) => [text, faults[index]]))
  return (manifest: Manifest) => known.get(JSON.stringify(manifest)) ?? customResourceFaults(manifest)
})()

/** The Secrets that the central overlay leaves to the operator. */
const operatorsSecrets = (name: string) =>
  name.startsWith('central') && !name.includes('cert-manager') ? ['kpng-core-tls', 'kpng-node-tls'] : []

const everyContainer = ({ spec }: Workload) => [
  ...(spec.template.spec.initContainers ?? []),
  ...spec.template.spec.containers,
]

/** What a backend in the kernel may do, by its word. Undefined: it must be privileged, to set sysctls. */
const rightsOf: { readonly [word: string]: readonly string[] | undefined } = {
  'to-nft': ['NET_ADMIN'],
  'to-ebpf': ['NET_ADMIN', 'BPF'],
  'to-iptables': ['NET_ADMIN', 'NET_RAW'],
  'to-ipvs': undefined,
}
const backendIn = (args: readonly string[]) => args.find((word) => word in rightsOf)

const commandLinesOf = (workload: Workload): CommandLine[] =>
  everyContainer(workload).map((container) => {
    const { command = [], args = [], env = [] } = container
    const program = command[0] ?? 'kpng'
    expect(program, `${nameOf(workload)} runs kpng`).toMatch(/(^|\/)kpng(\.exe)?$/)
    const given = new Set(env.map(({ name }) => name))
    // What the variable holds does not matter to the parser; that there is one does.
    const words = [...command.slice(1), ...args].map((word) =>
      word.replace(/\$\((\w+)\)/g, (whole, name) => (given.has(name) ? 'value' : whole)),
    )
    return { where: `${nameOf(workload)} ${container.name}`, words }
  })

async function expectTaken({ where, words }: CommandLine): Promise<void> {
  expect(await refusal(words), `${where}: kpng ${words.join(' ')}`).toBeUndefined()
}

describe.skipIf(!hasKubectl)('manifests', () => {
  describe.each(rendered)('$name', ({ name, all }) => {
    const workloads = all.filter(isWorkload)

    test('is what the schemas of Kubernetes allow: no field more, none less', () => {
      expect(all.flatMap(schemaFaultsOf)).toEqual([])
      expect(all.flatMap(valueFaults)).toEqual([])
      expect(workloads.length).toBeGreaterThan(0)
    })

    test('asks for memory and CPU in every container', () => {
      for (const { name: container, resources } of workloads.flatMap(everyContainer))
        expect(resources?.requests, container).toEqual({ cpu: expect.anything(), memory: expect.anything() })
    })

    test('has a folder for the socket that kpng status, get and explain ask', () => {
      for (const { spec } of workloads) {
        const { containers, volumes = [], securityContext: pod = {} } = spec.template.spec
        if (pod.windowsOptions?.hostProcess) continue
        for (const { name: container, args = [], env = [], volumeMounts = [], securityContext } of containers) {
          const isRoot = (securityContext?.runAsUser ?? pod.runAsUser) === 0
          const told = env.find((one) => one.name === 'RUNTIME_DIRECTORY')?.value
          expect(isRoot ? '/run/kpng' : told, `${container} is not root, so it must be told`).toBe('/run/kpng')
          const mount = volumeMounts.find(({ mountPath }) => mountPath === '/run/kpng')
          const volume = volumes.find((one) => one.name === mount?.name)
          // Those that write rules share the node's folder, and so their lock.
          expect(volume, container).toMatchObject(
            backendIn(args) ? { hostPath: { path: '/run/kpng' } } : { emptyDir: {} },
          )
        }
      }
    })

    test("gives what sets the kernel's values the settings of the proxy, and room to remember what was there", () => {
      for (const { spec } of workloads) {
        const { containers, initContainers = [], volumes = [] } = spec.template.spec
        const config = containers.flatMap(({ args = [] }) => args.filter((word) => word.startsWith('--config=')))
        for (const { name: container, args = [], volumeMounts = [] } of initContainers) {
          expect(
            args.filter((word) => word.startsWith('--config=')),
            container,
          ).toEqual(config)
          const run = volumes.find((one) => one.name === volumeMounts.find((m) => m.mountPath === '/run/kpng')?.name)
          expect(run, container).toMatchObject({ hostPath: { path: '/run/kpng' } })
          expect(volumeMounts.map(({ mountPath }) => mountPath)).toEqual(
            config.length > 0 ? ['/run/kpng', '/var/lib/kube-proxy'] : ['/run/kpng'],
          )
        }
      }
    })

    test('refers only to what is there', () => {
      expect(referenceFaults(all, operatorsSecrets(name))).toEqual([])
    })

    test('has command lines that kpng takes', async () => {
      for (const line of workloads.flatMap(commandLinesOf)) await expectTaken(line)
    })

    test('has no more rights than it needs', () => {
      for (const { spec } of workloads) {
        const pod = spec.template.spec
        expect(pod.tolerations).toEqual([{ operator: 'Exists' }])
        if (pod.securityContext?.windowsOptions?.hostProcess) continue
        expect(pod.securityContext?.seccompProfile?.type).toBe('RuntimeDefault')
        for (const { args = [], securityContext } of pod.containers) {
          const backend = backendIn(args)
          const rights = backend && rightsOf[backend]
          expect(securityContext).toMatchObject({ readOnlyRootFilesystem: true })
          if (backend && !rights) {
            expect(securityContext).toMatchObject({ privileged: true })
            continue
          }
          expect(securityContext).toMatchObject({ allowPrivilegeEscalation: false })
          expect(securityContext?.capabilities).toEqual({ drop: ['ALL'], ...(rights ? { add: rights } : {}) })
          if (!backend) expect(securityContext?.runAsNonRoot ?? pod.securityContext?.runAsNonRoot).toBe(true)
        }
        // What is privileged sets the kernel's values and ends.
        for (const { args, securityContext } of pod.initContainers ?? []) {
          expect(args).toContain('--init-only')
          expect(securityContext).toMatchObject({ privileged: true, readOnlyRootFilesystem: true })
        }
      }
    })

    test('tells every node agent which node it is on', () => {
      for (const { kind, spec } of workloads.filter((one) => one.kind === 'DaemonSet')) {
        expect(spec.template.spec, kind).toMatchObject({ hostNetwork: true, priorityClassName: 'system-node-critical' })
        for (const { env } of spec.template.spec.containers) {
          expect(env).toContainEqual(
            expect.objectContaining({
              name: 'NODE_NAME',
              valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'spec.nodeName' } },
            }),
          )
        }
      }
    })

    test('serves health and metrics where they are asked for', () => {
      const containers = workloads.flatMap(({ spec }) => spec.template.spec.containers)
      for (const { args = [], ports = [], name: container } of containers) {
        for (const [flag, port] of [
          ['--healthz-bind-address', 'healthz'],
          ['--metrics-bind-address', 'metrics'],
        ]) {
          const served = args.some((word) => word.startsWith(`${flag}=`) && !word.includes('=127.'))
          expect(served, `${container} ${flag}`).toBe(ports.some((one) => one.name === port))
        }
      }
      if (name.startsWith('the base')) return
      const backends = containers.filter(({ args = [] }) =>
        args.some((word) => /^to-(nft|ebpf|iptables|ipvs|winuserspace|winkernel)$/.test(word)),
      )
      expect(backends).toHaveLength(1)
      expect(backends[0]).toMatchObject({
        startupProbe: { httpGet: { path: '/livez' } },
        livenessProbe: { httpGet: { path: '/livez' } },
        readinessProbe: { httpGet: { path: '/readyz' } },
      })
    })
  })

  describe('the ranges of pods', () => {
    const settings = mkdtempSync(join(tmpdir(), 'kpng-settings-'))
    const config = join(settings, 'config.conf')
    afterAll(() => rmSync(settings, { recursive: true, force: true }))
    writeFileSync(
      config,
      'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nclusterCIDR: 10.244.0.0/16\nmode: iptables\n',
    )

    /** Runs the backend of an overlay with its own flags on a state file, without touching anything. */
    function podsOf(name: string, clusterCidr: string): string | undefined {
      const containers = render(overlay(name))
        .filter(isWorkload)
        .flatMap(({ spec }) => spec.template.spec.containers)
      const { args = [] } = containers.find((one) => one.args?.includes('to-nft')) ?? {}
      const flags = args
        .slice(args.indexOf('to-nft') + 1)
        .map((word) => word.replace('$(CLUSTER_CIDR)', clusterCidr).replace('/var/lib/kube-proxy/config.conf', config))
      const source = ['file', '-i', join(root, 'examples/state.yaml'), 'to-local', '--once', '--node-name', 'vm-001']
      const program = [join(root, 'cli/bin/kpng.js'), ...source, 'to-nft', '--dry-run', ...flags]
      const { stdout, stderr } = spawnSync(process.execPath, program, { encoding: 'utf8' })
      return /^add element ip kpng pods \{ (.*) \}$/m.exec(stdout)?.[1] ?? stderr
    }

    test.each(['one-process', 'two-containers', 'central'])('%s has those of kube-proxy', (name) => {
      expect(podsOf(name, '')).toBe('10.244.0.0-10.244.255.255')
    })

    test('are those in CLUSTER_CIDR, if it is given', () => {
      expect(podsOf('one-process', '10.0.0.0/8')).toBe('10.0.0.0-10.255.255.255')
    })

    test('are warned about if nobody gives them', () => {
      expect(podsOf('specialised', '')).toContain('No cluster CIDR is set')
    })
  })

  test('the rights in the cluster are those of a Service proxy, and no more', () => {
    const roles = render(overlay('one-process')).filter(({ kind }) => kind === 'ClusterRole')
    const rules = roles.flatMap(
      (role) => (role as unknown as { rules: Record<'apiGroups' | 'resources' | 'verbs', string[]>[] }).rules,
    )
    const rights = rules.flatMap(({ apiGroups, resources, verbs }) =>
      apiGroups.flatMap((group) => resources.map((resource) => `${group || 'core'}/${resource}: ${verbs.join(' ')}`)),
    )
    expect(rights.sort()).toEqual([
      'core/events: create',
      'core/nodes: get list watch',
      'core/services: list watch',
      'discovery.k8s.io/endpointslices: list watch',
      'events.k8s.io/events: create',
      'networking.k8s.io/servicecidrs: list watch',
    ])
  })

  test('nodes of the central overlay have no rights in the cluster at all', () => {
    const all = render(overlay('central'))
    const node = all.filter(isWorkload).find(({ kind }) => kind === 'DaemonSet')
    expect(node?.spec.template.spec.serviceAccountName).toBe('kpng-node')
    const bindings = all.filter(({ kind }) => kind === 'ClusterRoleBinding')
    expect(JSON.stringify(bindings)).not.toContain('kpng-node')
  })

  test('a specialised proxier stands beside another kpng: no object has the same name', () => {
    const names = (name: string) => render(overlay(name)).map(nameOf)
    expect(names('specialised').filter((name) => names('one-process').includes(name))).toEqual([])
  })
})

test('the example of a Service has only fields that Services have', () => {
  const text = readFileSync(join(overlay('specialised'), 'service-example.yaml'), 'utf8')
  expect(schemaFaults(manifestsIn(text)).flat()).toEqual([])
  expect(manifestsIn(text).flatMap(valueFaults)).toEqual([])
})

describe('a fault is found', () => {
  const text = readFileSync(join(here, 'base', 'node', 'daemonset.yaml'), 'utf8')
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'kpng' } }
  const settings = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kpng' }, data: { CLUSTER_CIDR: '' } }
  const cases = [
    ['hostNetwork: true', 'hostNetworking: true', `hostNetworking"' does not exist in type 'PodSpec'`],
    ['hostNetwork: true', 'hostNetwork: "yes"', `Type 'string' is not assignable to type 'boolean`],
    ['image: kpng:0.1.0', 'imagine: kpng:0.1.0', `imagine"' does not exist in type 'Container'`],
    ['- name: kpng', '- stdin: true', `Property 'name' is missing`],
    ['apiVersion: apps/v1', 'apiVersion: apps/v1beta1', 'is no kind known here'],
    ['memory: 1Gi', 'memory: lots', 'lots is no quantity'],
    [
      '      app.kubernetes.io/component: node\n  update',
      '      app.kubernetes.io/component: nodes\n  update',
      'does not select its own pods',
    ],
    ['serviceAccountName: kpng', 'serviceAccountName: king', 'there is no ServiceAccount king'],
    ['key: CLUSTER_CIDR', 'key: CLUSTER_CIDER', 'has no CLUSTER_CIDER'],
    ['$(CLUSTER_CIDR)', '$(CLUSTER_CIDER)', '$(CLUSTER_CIDER) is no variable of it'],
    ['- name: state\n          mountPath', '- name: nowhere\n          mountPath', 'there is no volume nowhere'],
    [
      'resources:\n',
      'livenessProbe: {httpGet: {path: /, port: healthz}}\n        resources:\n',
      'asks the port healthz',
    ],
    ['resources:\n', 'ports: [{name: healthz, containerPort: 102560}]\n        resources:\n', '102560 is no port'],
  ] as const
  const changed = [text, ...cases.map(([before, after]) => text.replace(before, after))].map(
    (one) => manifestsIn(one)[0] as Manifest,
  )
  const known = schemaFaults(changed.map((one) => (schemaOf(one.apiVersion) ? one : account)))
  const faultsOf = (index: number) => {
    const manifest = changed[index] as Manifest
    return [
      ...(schemaOf(manifest.apiVersion) ? (known[index] ?? []) : customResourceFaults(manifest)),
      ...valueFaults(manifest),
      ...referenceFaults([manifest, account, settings], []),
    ]
  }

  test('and the DaemonSet itself has none', () => expect(faultsOf(0)).toEqual([]))

  test.each(cases.map((one, index) => [...one, index + 1] as const))('%j as %j', (before, _, expected, index) => {
    expect(text).toContain(before)
    expect(faultsOf(index).join('\n')).toContain(expected)
  })

  test.each([
    ['kube to-local to-nft --masquerade-al=true', "unknown option '--masquerade-al=true'"],
    ['kube to-local to-nfc', "unknown command 'to-nfc'"],
    ['local --api to-nft', 'outputHelp'],
    ['kube', 'outputHelp'],
  ])('kpng %s', async (words, expected) => {
    expect(await refusal(words.split(' '))).toContain(expected)
  })
})

describe('systemd units', () => {
  const folder = join(here, 'systemd')
  const units = readdirSync(folder).filter((file) => file.endsWith('.service'))

  test.each(units)('%s has a command line that kpng takes', async (file) => {
    const lines = ofUnit(folder, file)
    expect(lines).toHaveLength(1)
    for (const line of lines) await expectTaken(line)
  })

  test.skipIf(!hasSystemd)('systemd takes them, and finds them well shut', () => {
    const copies = mkdtempSync(join(tmpdir(), 'kpng-units-'))
    try {
      for (const file of units) {
        // kpng need not be installed here.
        const text = readFileSync(join(folder, file), 'utf8').replace('/usr/local/bin/kpng', '/bin/true')
        writeFileSync(join(copies, file), text)
      }
      const run = (...args: string[]) => spawnSync('systemd-analyze', args, { cwd: copies, encoding: 'utf8' })
      const verified = run('verify', ...units.map((file) => `./${file}`))
      expect(`${verified.stdout}${verified.stderr}`).toBe('')
      for (const file of units) {
        const { stdout } = run('security', '--offline=true', '--no-pager', `./${file}`)
        const exposure = Number(/exposure level for \S+: ([\d.]+)/.exec(stdout)?.[1] ?? Number.NaN)
        expect(exposure, file).toBeLessThan(3)
      }
    } finally {
      rmSync(copies, { recursive: true, force: true })
    }
  })
})

describe('Windows services', () => {
  test('have command lines that kpng takes', async () => {
    const lines = ofPowerShell(join(here, 'windows'), 'install-kpng.ps1')
    expect(lines.map(({ where }) => where.split(' ')[1])).toEqual([
      ...['kpngWords', 'coreWords', 'backendWords', 'kernelWords', 'kernelBackendWords'],
    ])
    for (const line of lines) await expectTaken(line)
  })

  test('are tested with command lines that kpng takes', async () => {
    const lines = ofPowerShell(join(here, 'windows'), 'test-winkernel.ps1')
    expect(lines.map(({ words }) => words.at(-1))).toEqual(['probe', 'sync', 'traffic', 'clean'])
    const common = ['--network-name', '--source-vip', '--node-ip', '--pod-ips', '--pods']
    const flags = [...common.flatMap((flag) => [flag, '10.0.0.1']), '-o', 'json']
    for (const { where, words } of lines) await expectTaken({ where, words: [...words, ...flags] })
    const text = readFileSync(join(here, 'windows', 'test-winkernel.ps1'), 'utf8')
    expect([...text.matchAll(/@\('(--[\w-]+)'/g)].map(([, flag]) => flag)).toEqual(common)
  })

  test.each(readdirSync(join(here, 'windows')))(
    '%s closes what it opens, and uses only parameters that it has',
    (file) => {
      const text = readFileSync(join(here, 'windows', file), 'utf8')
      for (const [open, close] of ['()', '{}', '[]']) {
        expect(text.split(open as string).length, `${open} and ${close}`).toBe(text.split(close as string).length)
      }
      const script = text.replace(/<#[\s\S]*?#>/g, '').replace(/#.*$/gm, '')
      const own = ['_', 'env', 'LASTEXITCODE', 'PSCmdlet', 'ErrorActionPreference', 'false', 'true']
      const known = [
        ...script.matchAll(/\[(?:string|int|switch)(?:\[\])?\] \$(\w+)|\$(\w+) =|foreach \(\$(\w+) in/g),
      ].flatMap(([, ...names]) => names.filter((name) => name !== undefined))
      const used = [...script.matchAll(/\$\(?\$?(\w+)|@(Arguments)/g)].map(([, name, splat]) => name ?? splat ?? '')
      expect(used.filter((name) => !known.includes(name) && !own.includes(name))).toEqual([])
    },
  )
})

describe('images', () => {
  const lines = (file: string) =>
    readFileSync(join(here, file), 'utf8')
      .replace(/\\\n/g, ' ')
      .split('\n')
      .filter((line) => /^[A-Z]+ /.test(line))

  test('are made of files that are there and that the build is given', () => {
    const ignored = readFileSync(join(here, 'Dockerfile.dockerignore'), 'utf8').split('\n')
    for (const line of lines('Dockerfile').filter((one) => one.startsWith('COPY deploy/'))) {
      const source = line.split(/\s+/)[1] as string
      expect(existsSync(join(root, source)), source).toBe(true)
      expect(
        ignored.some((one) => one.startsWith('!') && source.startsWith(one.slice(1))),
        source,
      ).toBe(true)
    }
    const { workspaces } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { workspaces: string[] }
    for (const workspace of workspaces) expect(ignored).toContain(`!${workspace.split('/')[0]}`)
  })

  test.each([
    ['0', 'node:24-trixie-slim', 0],
    ['0', `node:24-trixie-slim@sha256:${'a'.repeat(64)}`, 0],
    ['1', `registry:5000/node:24-trixie-slim@sha256:${'a'.repeat(64)}`, 0],
    ['1', 'node:24-trixie-slim', 1],
    ['1', 'node:24-trixie-slim@sha256:abc', 1],
    ['yes', 'node:24-trixie-slim', 1],
  ])('with RELEASE=%s and the base %s: exit code %i', (RELEASE, NODE_IMAGE, code) => {
    const check = lines('Dockerfile').find((line) => line.startsWith('RUN case ')) as string
    const { status, stderr } = spawnSync('sh', ['-c', check.slice(4)], {
      env: { RELEASE, NODE_IMAGE },
      encoding: 'utf8',
    })
    expect(status).toBe(code)
    expect(stderr.includes('a release needs a base image by digest')).toBe(code === 1)
  })

  test('have the Node that the single files have', () => {
    const [, major] = /^ARG NODE_IMAGE=node:(\d+)-/m.exec(readFileSync(join(here, 'Dockerfile'), 'utf8')) ?? []
    const [, pinned] = /nodeVersion = '(\d+)/.exec(readFileSync(join(root, 'scripts/package/targets.js'), 'utf8')) ?? []
    expect(major).toBe(pinned)
  })

  test('end as a user without rights, and say how they are', () => {
    const last = lines('Dockerfile')
    expect(last.filter((line) => line.startsWith('USER '))).toEqual(['USER 65532:65532'])
    expect(last.some((line) => line.startsWith('HEALTHCHECK '))).toBe(true)
    expect(last).toContain('ENTRYPOINT ["kpng"]')
  })

  test('carry the version of the command', () => {
    const { version } = JSON.parse(readFileSync(join(root, 'cli', 'package.json'), 'utf8')) as { version: string }
    const files = readdirSync(here, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.yaml'))
    const images = files.flatMap((file) =>
      [...readFileSync(join(here, file), 'utf8').matchAll(/image: (\S+)/g)].map(([, image]) => image),
    )
    expect(new Set(images)).toEqual(new Set([`kpng:${version}`, `kpng-windows:${version}`]))
  })
})

describe('the check of an image', () => {
  const ask = (url: string) =>
    spawnSync(process.execPath, [join(here, 'image', 'healthcheck.js')], {
      env: { ...process.env, KPNG_HEALTHZ: url },
      encoding: 'utf8',
    })

  test('fails, with a sentence, where nobody answers', () => {
    const { status, stderr } = ask('http://127.0.0.1:1/healthz')
    expect(status).toBe(1)
    expect(stderr).toContain('Then set KPNG_HEALTHZ.')
  })
})

describe('guides', () => {
  const folder = join(root, 'docs')
  const guides = readdirSync(folder).filter((file) => file.endsWith('.md'))

  test.each(guides)('%s names files that are there', (file) => {
    const text = readFileSync(join(folder, file), 'utf8')
    const named = [...text.matchAll(/\bdeploy\/[\w./-]*\w/g)].map(([path]) => path)
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })
})
