import { readFileSync } from 'node:fs'
import { KpngError } from '@kpng/api'
import { load } from 'js-yaml'
import { describe, expect, test } from 'vitest'
import { readConfig, readConfigFile } from './read-config.js'
import { resolveSettings } from './resolve.js'
import { defaultSettings } from './settings.js'

const configMapFile = new URL('../testing/kubeadm-configmap.yaml', import.meta.url)
const kubeadmConfig = (): string =>
  (load(readFileSync(configMapFile, 'utf8')) as { data: Record<string, string> }).data['config.conf'] ?? ''

const config = (yaml: string) =>
  readConfig(`apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n${yaml}`)

const errorOf = (read: () => unknown): KpngError => {
  try {
    read()
  } catch (error) {
    if (error instanceof KpngError) return error
    throw error
  }
  throw new Error('It was accepted')
}

describe('the ConfigMap that kubeadm writes', () => {
  test('is read unchanged: what it sets is set, all else is the default, and only the change of mode is warned about', () => {
    const { settings, warnings } = readConfig(kubeadmConfig())
    expect(resolveSettings({ file: settings }).settings).toEqual({
      ...defaultSettings,
      kubeconfig: '/var/lib/kube-proxy/kubeconfig.conf',
      clusterCidrs: ['10.244.0.0/16'],
    })
    expect(warnings.map(({ field }) => field)).toEqual(['nodePortAddresses'])
  })

  test('can be given whole, as kubectl saves it', () => {
    expect(readConfig(readFileSync(configMapFile, 'utf8'))).toEqual(readConfig(kubeadmConfig()))
  })

  test('is read as JSON too', () => {
    expect(readConfig(JSON.stringify(load(kubeadmConfig())))).toEqual(readConfig(kubeadmConfig()))
  })
})

test('every field that is acted on is read', () => {
  const { settings, warnings } = config(`
mode: nftables
hostnameOverride: Worker-1
bindAddress: "fd00::1"
healthzBindAddress: 10.0.0.1
metricsBindAddress: "[::1]:9999"
bindAddressHardFail: true
enableProfiling: true
clientConnection: { kubeconfig: /etc/kube.conf }
clusterCIDR: 10.244.0.0/16,fd00:10::/56
detectLocalMode: BridgeInterface
detectLocal: { bridgeInterface: cbr0, interfaceNamePrefix: veth }
nodePortAddresses: [primary, 192.168.0.0/16]
nftables: { masqueradeAll: true, masqueradeBit: 0, syncPeriod: 1m, minSyncPeriod: 250ms }
iptables: { localhostNodePorts: false }
oomScoreAdj: 0
conntrack: { maxPerCore: 0, min: 5, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 1h0m0s, tcpBeLiberal: true, udpTimeout: 30s, udpStreamTimeout: 2m30s }
logging: { verbosity: 4, format: json }
`)
  expect(settings).toEqual({
    mode: 'nftables',
    hostnameOverride: 'worker-1',
    bindAddress: 'fd00::1',
    healthzBindAddress: '10.0.0.1:10256',
    metricsBindAddress: '[::1]:9999',
    bindAddressHardFail: true,
    enableProfiling: true,
    kubeconfig: '/etc/kube.conf',
    clusterCidrs: ['10.244.0.0/16', 'fd00:10::/56'],
    detectLocalMode: 'BridgeInterface',
    bridgeInterface: 'cbr0',
    interfaceNamePrefix: 'veth',
    nodePortAddresses: ['primary', '192.168.0.0/16'],
    masqueradeAll: true,
    masqueradeBit: 0,
    localhostNodePorts: false,
    syncPeriodMs: 60_000,
    minSyncPeriodMs: 250,
    oomScoreAdj: 0,
    conntrackMaxPerCore: 0,
    conntrackMin: 5,
    conntrackTcpEstablishedTimeoutMs: 0,
    conntrackTcpCloseWaitTimeoutMs: 3_600_000,
    conntrackTcpBeLiberal: true,
    conntrackUdpTimeoutMs: 30_000,
    conntrackUdpStreamTimeoutMs: 150_000,
    verbosity: 4,
    logFormat: 'json',
  })
  expect(warnings).toEqual([])
})

test('mode iptables: every field of the sections iptables and conntrack is used, and nothing is warned about', () => {
  // The fields of KubeProxyIPTablesConfiguration and KubeProxyConntrackConfiguration in kubeproxy.config.k8s.io/v1alpha1.
  const { settings, warnings } = config(`mode: iptables
iptables:
  masqueradeBit: 15
  masqueradeAll: true
  localhostNodePorts: false
  syncPeriod: 41s
  minSyncPeriod: 3s
conntrack:
  maxPerCore: 1000
  min: 2000
  tcpEstablishedTimeout: 2h
  tcpCloseWaitTimeout: 30m
  tcpBeLiberal: true
  udpTimeout: 7s
  udpStreamTimeout: 8s
`)
  expect(settings).toEqual({
    ...{ mode: 'iptables', masqueradeBit: 15, masqueradeAll: true, localhostNodePorts: false },
    ...{ syncPeriodMs: 41_000, minSyncPeriodMs: 3000, conntrackMaxPerCore: 1000, conntrackMin: 2000 },
    ...{ conntrackTcpEstablishedTimeoutMs: 7_200_000, conntrackTcpCloseWaitTimeoutMs: 1_800_000 },
    ...{ conntrackTcpBeLiberal: true, conntrackUdpTimeoutMs: 7000, conntrackUdpStreamTimeoutMs: 8000 },
  })
  expect(warnings).toEqual([])
})

describe('the section of the mode', () => {
  const sections =
    'nftables: { masqueradeAll: false, syncPeriod: 0s }\niptables: { masqueradeAll: true, syncPeriod: 10s }\n'

  test('without a mode, what was set for iptables is meant', () => {
    expect(config(sections).settings).toMatchObject({ masqueradeAll: true, syncPeriodMs: 10_000 })
  })

  test('in mode nftables it is not, and that is said', () => {
    const { settings, warnings } = config(`mode: nftables\n${sections}`)
    expect(settings.masqueradeAll).toBe(false)
    expect(settings.syncPeriodMs).toBeUndefined()
    expect(warnings.map(({ field }) => field).sort()).toEqual(['iptables.masqueradeAll', 'iptables.syncPeriod'])
  })
})

test('the section ipvs is read in its mode, and masquerading is that of iptables', () => {
  const { settings, warnings } = config(
    'mode: ipvs\niptables: { masqueradeAll: true }\n' +
      'ipvs: { scheduler: lc, excludeCIDRs: [10.9.0.0/16], strictARP: true, tcpTimeout: 15m, tcpFinTimeout: 0s, udpTimeout: 90s, syncPeriod: 5s }',
  )
  expect(warnings).toEqual([])
  expect(settings).toMatchObject({
    ...{
      mode: 'ipvs',
      masqueradeAll: true,
      syncPeriodMs: 5000,
      ipvsScheduler: 'lc',
      ipvsExcludeCidrs: ['10.9.0.0/16'],
    },
    ...{ ipvsStrictArp: true, ipvsTcpTimeoutMs: 900_000, ipvsTcpFinTimeoutMs: 0, ipvsUdpTimeoutMs: 90_000 },
  })
})

test('a configuration for the kernelspace mode of Windows', () => {
  const winkernel =
    'winkernel: { networkName: vxlan0, sourceVip: 10.244.1.2, enableDSR: true, rootHnsEndpointName: cbr0-ep, forwardHealthCheckVip: true }'
  const { settings, warnings } = config(`mode: kernelspace\n${winkernel}\niptables: { syncPeriod: 10s }\n`)
  expect(warnings).toEqual([])
  expect(settings).toMatchObject({
    ...{ mode: 'kernelspace', networkName: 'vxlan0', sourceVip: '10.244.1.2', enableDsr: true, syncPeriodMs: 10_000 },
    ...{ rootHnsEndpointName: 'cbr0-ep', forwardHealthCheckVip: true },
  })
  // kubeadm writes every field. What nobody set is not a setting.
  const unset = config('mode: nftables\nwinkernel: { networkName: "", sourceVip: "", enableDSR: false }\n')
  expect(unset.warnings).toEqual([])
  expect(unset.settings).not.toHaveProperty('enableDsr')
})

describe('what is not acted on is warned about by name, once', () => {
  test.each([
    [
      'ipvs: { scheduler: rr, strictARP: true, syncPeriod: 5s }',
      ['ipvs.syncPeriod', 'ipvs.scheduler', 'ipvs.strictARP'],
    ],
    ['clientConnection: { qps: 50, burst: 100 }', ['clientConnection.qps', 'clientConnection.burst']],
    ['winkernel: { sourceVip: 10.0.0.1 }', ['winkernel.sourceVip']],
    ['logging: { vmodule: [{ filePattern: proxier, verbosity: 4 }] }', ['logging.vmodule']],
    ['configSyncPeriod: 15m', ['configSyncPeriod']],
    ['iptables: { localhostNodePorts: true }', ['iptables.localhostNodePorts']],
  ])('%s', (yaml, fields) => {
    const { warnings } = config(`mode: nftables\n${yaml}`)
    expect(warnings.map(({ field }) => field)).toEqual(fields)
    for (const { field, message } of warnings) expect(message).toContain(field)
  })

  test('a field that does not exist, with its path', () => {
    const { settings, warnings } = config('mode: nftables\nconntrack: { maxPerKore: 4, min: 7 }\nspeed: fast\n')
    expect(warnings.map(({ field }) => field)).toEqual(['conntrack.maxPerKore', 'speed'])
    expect(settings.conntrackMin).toBe(7)
  })

  test('a field that is there twice', () => {
    const { settings, warnings } = config('mode: iptables\nmode: nftables\n')
    expect(settings.mode).toBe('nftables')
    expect(warnings).toEqual([
      { field: '', message: 'A field is given twice (line 4, column 1). The last value is used.' },
    ])
  })
})

describe('a bad value is an error that names field and value', () => {
  test.each([
    ['nftables: { syncPeriod: 30 }', 'nftables.syncPeriod is 30.'],
    ['nftables: { syncPeriod: 30sec }', 'nftables.syncPeriod is "30sec".'],
    ['conntrack: { udpTimeout: -1s }', 'conntrack.udpTimeout is "-1s".'],
    ['conntrack: { min: -1 }', 'conntrack.min is -1.'],
    ['conntrack: { maxPerCore: "7" }', 'conntrack.maxPerCore is "7".'],
    ['healthzBindAddress: 0.0.0.0:70000', 'healthzBindAddress is "0.0.0.0:70000". Its port is "70000"'],
    ['metricsBindAddress: localhost:10249', 'metricsBindAddress is "localhost:10249".'],
    ['metricsBindAddress: "::1:10249:"', 'metricsBindAddress is "::1:10249:".'],
    ['bindAddress: 010.1.1.1', 'bindAddress is "010.1.1.1".'],
    ['clusterCIDR: 10.244.0.0', 'clusterCIDR is "10.244.0.0".'],
    ['clusterCIDR: 10.244.0.0/33', 'clusterCIDR is "10.244.0.0/33".'],
    ['nodePortAddresses: [10.0.0.0/8, secondary]', 'nodePortAddresses[1] is "secondary".'],
    ['nodePortAddresses: primary', 'nodePortAddresses is "primary". Write a list.'],
    ['nftables: { masqueradeBit: 32 }', 'nftables.masqueradeBit is 32.'],
    ['oomScoreAdj: -1001', 'oomScoreAdj is -1001.'],
    ['detectLocalMode: Guess', 'detectLocalMode is "Guess".'],
    ['enableProfiling: "yes"', 'enableProfiling is "yes".'],
    ['hostnameOverride: " "', 'hostnameOverride is " ".'],
    ['hostnameOverride: 17', 'hostnameOverride is 17.'],
    ['featureGates: { A: "true" }', 'featureGates.A is "true".'],
    ['featureGates: [A]', 'featureGates is ["A"].'],
    ['conntrack: 5', 'conntrack is 5.'],
  ])('%s', (yaml, sentence) => {
    const error = errorOf(() => config(`mode: nftables\n${yaml}`.replace('mode: nftables\nmode', 'mode')))
    expect(error.code).toBe('invalid')
    expect(error.message).toContain(sentence)
  })

  test.each([
    ['kind: Service\napiVersion: v1', 'There is no KubeProxyConfiguration'],
    ['', 'There is no KubeProxyConfiguration'],
    [
      'kind: KubeProxyConfiguration\napiVersion: kubeproxy.config.k8s.io/v1',
      'apiVersion is "kubeproxy.config.k8s.io/v1"',
    ],
    ['a: [', 'It is not valid YAML: unexpected end of the stream within a flow collection (line 2, column 1).'],
    ['a: &a { b: *a }', 'Its YAML aliases stand for too many values, or for themselves'],
    [`${'['.repeat(100_000)}`, 'It is not valid YAML: nesting exceeded'],
  ])('of the document: %j', (text, sentence) => {
    expect(errorOf(() => readConfig(text)).message).toContain(sentence)
  })

  test('with the name of the file', async () => {
    await expect(readConfigFile('/does/not/exist.conf')).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('/does/not/exist.conf'),
    })
  })
})
