import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { Commands } from './testing/commands.js'
import { freePort } from './testing/pages.js'

// A backend with its node agent, as the command runs it.

const commands = new Commands()
afterEach(() => commands.cleanUp())

const state = `
services:
- service:
    namespace: default
    name: web
    type: ClusterIP
    ips: { clusterips: { v4: [ 127.97.1.1 ] } }
    ports: [ { name: http, protocol: 1, port: 18080, targetport: 8080 } ]
  endpoints: []
`

/** Starts the userspace proxy on a state file and a kube-proxy configuration, with health and metrics on free ports. */
async function start(configuration = '') {
  const folder = commands.folder()
  const [healthz, metrics] = await Promise.all([freePort(), freePort()])
  const file = join(folder, 'state.yaml')
  const config = join(folder, 'config.conf')
  writeFileSync(file, state)
  writeFileSync(
    config,
    `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nhostnameOverride: node-of-the-file\nhealthzBindAddress: 127.0.0.1:${healthz}\nmetricsBindAddress: 127.0.0.1:${metrics}\noomScoreAdj: 0\nconntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s }\n${configuration}`,
  )
  const proxy = commands.start(
    'kpng',
    'file',
    '-i',
    file,
    'to-local',
    'to-userspacelin',
    '--capture',
    'none',
    '--config',
    config,
    '-v',
    '2',
  )
  await proxy.says('Synced')
  const get = async (port: number, path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).text()
  return {
    proxy,
    file,
    config,
    health: (path: string) => get(healthz, path),
    page: (path: string) => get(metrics, path),
    metrics,
  }
}

test('health, metrics and the pages beside them are served where the configuration file says', async () => {
  const { health, page, file, proxy } = await start('bogusField: 1\n')
  expect(proxy.stderr).toContain('bogusField')
  expect(JSON.parse(await health('/healthz'))).toMatchObject({ nodeEligible: true })
  expect(JSON.parse(await health('/livez'))).toHaveProperty('lastUpdated')
  expect(await page('/proxyMode')).toBe('userspace')
  expect(await page('/configz')).toContain('node-of-the-file')

  const before = await page('/metrics')
  expect(before).toMatch(/^kubeproxy_sync_proxy_rules_service_changes_total.* 1$/m)
  // The portal refuses, since nobody serves it, and counts it.
  await fetch('http://127.97.1.1:18080/').catch(() => {})
  writeFileSync(file, readFileSync(file, 'utf8').replace('port: 18080', 'port: 18081'))
  await expect.poll(() => page('/metrics')).toMatch(/^kubeproxy_sync_proxy_rules_service_changes_total.* 2$/m)
  expect(await page('/metrics')).toMatch(/^kpng_userspace_connections_total\{.*service="web".*\} 0$/m)
})

test('the verbosity can be changed while it runs', async () => {
  const { page, metrics, proxy, file } = await start()
  expect(await page('/debug/flags/v')).toContain('2')
  await fetch(`http://127.0.0.1:${metrics}/debug/flags/v`, { method: 'PUT', body: '0' })
  const said = proxy.stderr.length
  writeFileSync(file, readFileSync(file, 'utf8').replace('name: web', 'name: other'))
  await expect.poll(() => page('/metrics')).toMatch(/^kubeproxy_sync_proxy_rules_service_changes_total.* 3$/m)
  expect(proxy.stderr.slice(said)).not.toContain('Synced')
})

test('a changed configuration file ends the process, so that it is restarted', async () => {
  const { config, proxy } = await start()
  writeFileSync(config, `${readFileSync(config, 'utf8')}enableProfiling: true\n`)
  // As kube-proxy: also a unit with Restart=on-failure starts it again.
  expect(await proxy.finished).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/configuration file \S+ has changed. kpng exits, so that it is restarted/),
  })
})

test('flags come before the file on /configz too, those of every command among them', async () => {
  const { page, metrics } = await start('logging: { verbosity: 4 }\n')
  const shown = async () => JSON.parse(await page('/configz'))
  expect(await shown()).toMatchObject({
    'kubeproxy.config.k8s.io': { mode: 'userspace', logging: { verbosity: 2 }, hostnameOverride: 'node-of-the-file' },
    'kpng.origins': { mode: 'default', 'logging.verbosity': 'flag', hostnameOverride: 'file' },
  })
  await fetch(`http://127.0.0.1:${metrics}/debug/flags/v`, { method: 'PUT', body: '1' })
  expect(await shown()).toMatchObject({ 'kubeproxy.config.k8s.io': { logging: { verbosity: 1 } } })
})

test('what a backend does not use of the file is said by name, and is not shown as in force', async () => {
  const { page, proxy } = await start(
    'mode: ipvs\nclusterCIDR: 10.244.0.0/16\nnodePortAddresses: [ 10.0.0.0/8 ]\niptables: { masqueradeAll: true }\n',
  )
  expect(proxy.stderr).toContain('mode is set ("ipvs"), and has no effect here: the userspace mode does not use it')
  expect(proxy.stderr).toContain('masqueradeAll is set (true), and has no effect here')
  expect(proxy.stderr).not.toMatch(/(?:clusterCIDR|nodePortAddresses) is set/)
  expect(JSON.parse(await page('/configz'))['kubeproxy.config.k8s.io']).toMatchObject({
    mode: 'userspace',
    clusterCIDR: '10.244.0.0/16',
    nodePortAddresses: ['10.0.0.0/8'],
  })
})

test('it is ready once the first rules are written; a Node that is not there is said', async () => {
  const { health, proxy } = await start()
  expect(JSON.parse(await health('/readyz'))).toMatchObject({ healthy: true })
  expect(proxy.stderr).toMatch(/There is no Node object of this name: .*node="node-of-the-file"/)
})

const folderWithState = () => {
  const folder = commands.folder()
  writeFileSync(join(folder, 'state.yaml'), state)
  return folder
}

test('a dry run opens no port and sets nothing', async () => {
  const folder = folderWithState()
  const { code, stdout, stderr } = await commands.run(
    ...['kpng', 'file', '-i', join(folder, 'state.yaml'), 'to-local', 'to-nft', '--dry-run', '-v', '4'],
  )
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('table ip kpng') })
  expect(stderr).not.toMatch(/OOM|kernel|Serving|port/)
})

test.each([
  ['vm-001', false],
  ['nowhere', true],
])('a dry run for the node %s warns about an unknown node: %s', async (node, warns) => {
  const examples = new URL('../examples/state.yaml', import.meta.url).pathname
  const { code, stderr } = await commands.run(
    ...['kpng', 'file', '-i', examples, 'to-local', 'to-nft', '--dry-run', '--node-name', node],
  )
  expect(code).toBe(0)
  expect(/There is no Node object of this name.* node="nowhere"/.test(stderr)).toBe(warns)
})

test('to-nft without a cluster CIDR warns once', async () => {
  const run = (...flags: string[]) =>
    commands.run(
      ...['kpng', 'file', '-i', join(folderWithState(), 'state.yaml'), 'to-local', 'to-nft', '--dry-run', ...flags],
    )
  expect((await run()).stderr.match(/No cluster CIDR is set/g)).toHaveLength(1)
  expect((await run('--cluster-cidr', '10.244.0.0/16')).stderr).not.toContain('No cluster CIDR')
})

test('--init-only needs no source', async () => {
  const { code } = await commands.run(
    ...['kpng', 'kube', '--kubeconfig', '/nowhere', 'to-local', 'to-nft', '--init-only'],
    ...['--conntrack-max-per-core', '0', '--conntrack-min', '0'],
    ...['--conntrack-tcp-timeout-established', '0s', '--conntrack-tcp-timeout-close-wait', '0s'],
  )
  expect(code).toBe(0)
})

test('a ratio of traces that is not a number is wrong usage', async () => {
  const folder = folderWithState()
  const { code, stderr } = await commands.run(
    ...['kpng', 'file', '-i', join(folder, 'state.yaml'), 'to-local', '--once', 'to-userspacelin', '--capture', 'none'],
    ...['--trace-ratio', 'half', '--oom-score-adj', '0'],
    ...['--healthz-bind-address', `127.0.0.1:${await freePort()}`],
    ...['--metrics-bind-address', `127.0.0.1:${await freePort()}`],
  )
  expect({ code, stderr }).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("'--trace-ratio <ratio>' argument 'half' is invalid"),
  })
})

test.each([
  ['mode: iptables', 'to-nft', /mode is "iptables".*to-iptables/, 1],
  ['mode: nftables', 'to-iptables', /mode is "nftables".*to-nft/, 1],
  ['mode: iptables', 'to-ipvs', /mode is "iptables".*to-iptables/, 1],
  ['ipvs: { scheduler: quick }', 'to-ipvs', /no scheduler "quick"/, 2],
  ['healthzBindAddress: nowhere', 'to-nft', /healthzBindAddress/, 1],
  ['syncPeriod: soon', 'to-userspacelin', /syncPeriod/, 1],
])('%s in the file is a clear error', async (line, backend, expected, code) => {
  const folder = commands.folder()
  const config = join(folder, 'config.conf')
  writeFileSync(
    config,
    `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n${line.startsWith('sync') ? `nftables:\n  ${line}\n` : `${line}\n`}`,
  )
  writeFileSync(join(folder, 'state.yaml'), state)
  const result = await commands.run(
    'kpng',
    'file',
    '-i',
    join(folder, 'state.yaml'),
    'to-local',
    backend,
    '--config',
    config,
    '--once',
  )
  expect(result.stderr).toMatch(expected)
  expect(result.code).toBe(code)
})

test('a file for kube-proxy with mode userspace starts to-userspacelin, without a warning', async () => {
  const folder = folderWithState()
  const config = join(folder, 'config.conf')
  const file = {
    ...{ apiVersion: 'kubeproxy.config.k8s.io/v1alpha1', kind: 'KubeProxyConfiguration', mode: 'userspace' },
    ...{ clusterCIDR: '10.244.0.0/16', iptables: { syncPeriod: '17s' }, oomScoreAdj: 0 },
    healthzBindAddress: `127.0.0.1:${await freePort()}`,
    metricsBindAddress: `127.0.0.1:${await freePort()}`,
  }
  writeFileSync(config, JSON.stringify(file))
  const words = ['file', '-i', join(folder, 'state.yaml'), 'to-local', '--once', 'to-userspacelin', '--capture', 'none']
  const { code, stderr } = await commands.run('kpng', ...words, '--config', config)
  expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.not.stringContaining('has no effect') })
})

test.each(['iptables', ''])('a file for kube-proxy with mode "%s" serves to-iptables unchanged', async (mode) => {
  const folder = folderWithState()
  const config = join(folder, 'config.conf')
  const file = {
    ...{ apiVersion: 'kubeproxy.config.k8s.io/v1alpha1', kind: 'KubeProxyConfiguration', mode },
    ...{ clusterCIDR: '10.244.0.0/16', nodePortAddresses: null },
    iptables: {
      localhostNodePorts: null,
      masqueradeAll: true,
      masqueradeBit: 15,
      minSyncPeriod: '0s',
      syncPeriod: '0s',
    },
    nftables: { masqueradeAll: false, masqueradeBit: null, minSyncPeriod: '0s', syncPeriod: '0s' },
  }
  writeFileSync(config, JSON.stringify(file))
  const words = ['file', '-i', join(folder, 'state.yaml'), 'to-local', 'to-iptables', '--dry-run', '--config', config]
  const { code, stdout, stderr } = await commands.run('kpng', ...words)
  expect(code).toBe(0)
  expect(stderr).not.toMatch(/has no effect|nftables/)
  expect(stdout).toContain('-A KUBE-MARK-MASQ -j MARK --set-xmark 0x8000/0x8000')
  // kube-proxy's defaults in this mode: node ports on every address, loopback among them.
  expect(stdout).toContain('-A KUBE-SERVICES -m addrtype --dst-type LOCAL -m comment')
})

test.each(['ipvs', ''])('a file for kube-proxy with mode "%s" serves to-ipvs unchanged', async (mode) => {
  const folder = folderWithState()
  const config = join(folder, 'config.conf')
  const file = {
    ...{ apiVersion: 'kubeproxy.config.k8s.io/v1alpha1', kind: 'KubeProxyConfiguration', mode },
    ...{ clusterCIDR: '10.244.0.0/16', nodePortAddresses: null },
    iptables: {
      localhostNodePorts: null,
      masqueradeAll: false,
      masqueradeBit: 15,
      minSyncPeriod: '0s',
      syncPeriod: '0s',
    },
    ipvs: {
      ...{ excludeCIDRs: null, minSyncPeriod: '0s', scheduler: 'lc', strictARP: true, syncPeriod: '0s' },
      ...{ tcpFinTimeout: '0s', tcpTimeout: '0s', udpTimeout: '0s' },
    },
    nftables: { masqueradeAll: false, masqueradeBit: null, minSyncPeriod: '0s', syncPeriod: '0s' },
  }
  writeFileSync(config, JSON.stringify(file))
  const words = ['file', '-i', join(folder, 'state.yaml'), 'to-local', 'to-ipvs', '--dry-run', '--config', config]
  const { code, stdout, stderr } = await commands.run('kpng', ...words)
  expect(code).toBe(0)
  expect(stderr).not.toMatch(/has no effect|nftables/)
  expect(stdout).toMatch(/^virtual server \S+ lc$/m)
  expect(stdout).toContain('meta mark set meta mark | 0x8000')
})

describe('the feature gates of kube-proxy', () => {
  const dryRun = async (backend: string, file: object, ...flags: string[]) => {
    const folder = commands.folder()
    const external = state.replace('} }\n', '}, externalips: { v4: [ 192.0.2.10 ] } }\n')
    writeFileSync(join(folder, 'state.yaml'), external)
    const config = join(folder, 'config.conf')
    const head = { apiVersion: 'kubeproxy.config.k8s.io/v1alpha1', kind: 'KubeProxyConfiguration' }
    writeFileSync(config, JSON.stringify({ ...head, ...file }))
    const words = ['file', '-i', join(folder, 'state.yaml'), 'to-local', backend, '--config', config, ...flags]
    return await commands.run('kpng', ...words, '--dry-run')
  }
  const off = { featureGates: { AllowServiceExternalIPs: false } }

  test.each<[string, string, object, string[], boolean]>([
    ['unset', 'to-nft', {}, [], true],
    ['off in the file', 'to-nft', off, [], false],
    ['off in the file', 'to-iptables', off, [], false],
    ['off in the file', 'to-ipvs', off, [], false],
    ['off in the file, and --external-ips', 'to-nft', off, ['--external-ips=true'], false],
    ['off in the file, and another gate as a flag', 'to-nft', off, ['--feature-gates', 'WinDSR=true'], false],
    ['off in the file, and on as a flag', 'to-nft', off, ['--feature-gates', 'AllowServiceExternalIPs=true'], true],
    ['off as a flag', 'to-nft', {}, ['--feature-gates=AllowServiceExternalIPs=false'], false],
  ])('AllowServiceExternalIPs %s: %s', async (_, backend, file, flags, isServed) => {
    const { code, stdout, stderr } = await dryRun(backend, file, ...flags)
    expect({ code, served: stdout.includes('192.0.2.10') }).toEqual({ code: 0, served: isServed })
    expect(stderr).not.toContain('featureGates')
  })

  test('unknown gates are named', async () => {
    const { stderr } = await dryRun('to-nft', { featureGates: { NobodyHasThis: true } })
    expect(stderr).toContain(
      'featureGates.NobodyHasThis is true, and has no effect here: kpng knows no gate of this name',
    )
  })
})

test('to-ipvs is refused if the feature gate KubeProxyIPVS is off', async () => {
  const words = ['file', '-i', join(folderWithState(), 'state.yaml'), 'to-local', 'to-ipvs', '--dry-run']
  const { code, stderr } = await commands.run('kpng', ...words, '--feature-gates', 'KubeProxyIPVS=false')
  expect(code).toBe(1)
  expect(stderr).toContain('The feature gate KubeProxyIPVS is off')
})
