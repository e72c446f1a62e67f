import { describe, expect, test } from 'vitest'
import { backendOfMode, checkMode, kernelBackendOptions } from './backend-options.js'
import { settingFlags, settingsFromFlags } from './flags.js'
import { resolveSettings } from './resolve.js'
import { configz, flagz } from './show.js'

describe('flags before file before defaults', () => {
  const resolved = resolveSettings({
    flags: settingsFromFlags({ syncPeriodMs: '10s', masqueradeAll: true, minSyncPeriodMs: '0s' }),
    file: { syncPeriodMs: 20_000, conntrackMin: 7 },
  })

  test('setting by setting, and it is known where each came from', () => {
    expect(resolved.settings).toMatchObject({
      syncPeriodMs: 10_000,
      minSyncPeriodMs: 0,
      conntrackMin: 7,
      oomScoreAdj: -999,
    })
    expect(resolved.origins).toMatchObject({
      syncPeriodMs: 'flag',
      masqueradeAll: 'flag',
      conntrackMin: 'file',
      oomScoreAdj: 'default',
    })
  })

  test('/configz shows a KubeProxyConfiguration and the origins', () => {
    expect(configz(resolved)).toMatchObject({
      'kubeproxy.config.k8s.io': {
        kind: 'KubeProxyConfiguration',
        nftables: { syncPeriod: '10s', minSyncPeriod: '0s', masqueradeAll: true, masqueradeBit: 14 },
        conntrack: { min: 7, tcpEstablishedTimeout: '24h0m0s', tcpCloseWaitTimeout: '1h0m0s', udpTimeout: '0s' },
        nodePortAddresses: ['primary'],
      },
      'kpng.origins': { 'nftables.syncPeriod': 'flag', 'conntrack.min': 'file', oomScoreAdj: 'default' },
    })
  })

  test('/configz shows the settings of several modes in the section of the mode that runs', () => {
    const { settings, origins } = resolved
    const shown = (mode: string) => configz({ settings: { ...settings, mode }, origins }) as Record<string, object>
    expect(shown('iptables')).toMatchObject({
      'kubeproxy.config.k8s.io': { iptables: { masqueradeAll: true, masqueradeBit: 14, syncPeriod: '10s' } },
      'kpng.origins': { 'iptables.masqueradeAll': 'flag' },
    })
    expect(shown('iptables')['kubeproxy.config.k8s.io']).not.toHaveProperty('nftables')
    expect(shown('ipvs')).toMatchObject({
      'kubeproxy.config.k8s.io': { ipvs: { syncPeriod: '10s' }, iptables: { masqueradeAll: true } },
    })
  })

  test('feature gates: those of the flag over those of the file, gate by gate', () => {
    const gates = resolveSettings({
      flags: settingsFromFlags({ featureGates: 'A=true, B=False' }),
      file: { featureGates: { B: true, AllowServiceExternalIPs: false } },
    })
    expect(gates.settings.featureGates).toEqual({ A: true, B: false, AllowServiceExternalIPs: false })
    expect(flagz(gates)['feature-gates']).toBe('B=false,AllowServiceExternalIPs=false,A=true')
    expect(configz(gates)).toMatchObject({ 'kubeproxy.config.k8s.io': { featureGates: { A: true } } })
    for (const text of ['A', 'A=1', '=true', 'A=true,'])
      expect(() => settingsFromFlags({ featureGates: text })).toThrow(/--feature-gates is/)
  })

  test('/flagz shows flags', () => {
    expect(flagz(resolved)).toMatchObject({
      'sync-period': '10s',
      'conntrack-min': '7 (file)',
      'nodeport-addresses': 'primary (default)',
    })
  })
})

describe('flags', () => {
  test('each has a name of its own', () => {
    expect(new Set(settingFlags.map(({ flag }) => flag)).size).toBe(settingFlags.length)
  })

  test('a bad one is wrong usage', () => {
    expect(() => settingsFromFlags({ conntrackMin: 'many' })).toThrow(
      expect.objectContaining({ code: 'usage', message: expect.stringContaining('--conntrack-min is "many"') }),
    )
  })

  test('lists have commas', () => {
    expect(settingsFromFlags({ nodePortAddresses: 'primary,10.0.0.0/8', clusterCidrs: '10.0.0.0/8,fd00::/8' })).toEqual(
      {
        nodePortAddresses: ['primary', '10.0.0.0/8'],
        clusterCidrs: ['10.0.0.0/8', 'fd00::/8'],
      },
    )
  })
})

test('an IPv6 node has IPv6 servers, unless an address is given', () => {
  const { settings } = resolveSettings({ file: { bindAddress: '::', metricsBindAddress: '127.0.0.1:1' } })
  expect(settings).toMatchObject({ healthzBindAddress: '[::]:10256', metricsBindAddress: '127.0.0.1:1' })
})

describe('settings that do not go together', () => {
  test.each([
    [{ detectLocalMode: 'BridgeInterface' as const }, 'detectLocal.bridgeInterface'],
    [{ detectLocalMode: 'InterfaceNamePrefix' as const }, 'detectLocal.interfaceNamePrefix'],
    [{ clusterCidrs: ['10.0.0.0/8', '11.0.0.0/8'] }, 'clusterCIDR'],
    [{ minSyncPeriodMs: 40_000 }, 'minSyncPeriod'],
    [{ syncPeriodMs: 0, minSyncPeriodMs: 0 }, 'syncPeriod'],
  ])('%j', (file, field) => {
    expect(() => resolveSettings({ file })).toThrow(
      expect.objectContaining({ code: 'invalid', message: expect.stringContaining(field) }),
    )
  })
})

describe('modes', () => {
  test('nftables and none are nft', () => {
    expect([backendOfMode('nftables'), backendOfMode('')]).toEqual(['nft', 'nft'])
  })

  test('a file for another mode than that of the backend is refused, and the sentence says which backend it is for', () => {
    expect(backendOfMode('iptables')).toBe('iptables')
    for (const mode of ['', 'iptables']) expect(() => checkMode(mode, 'iptables')).not.toThrow()
    expect(() => checkMode('iptables', 'nftables')).toThrow(/mode is "iptables".*to-iptables/)
    expect(() => checkMode('nftables', 'iptables')).toThrow(/mode is "nftables".*to-nft/)
    expect(() => checkMode('userspace', 'nftables')).toThrow(/mode is "userspace".*to-userspacelin/)
    expect(() => checkMode('ipvs', 'iptables')).toThrow(/mode is "ipvs".*to-ipvs/)
    expect(() => checkMode('kernelspace', 'ipvs')).toThrow(/mode is "kernelspace".*to-winkernel/)
  })

  test('kernelspace has a backend on Windows', () => {
    expect(() => checkMode('kernelspace', 'kernelspace')).not.toThrow()
    expect(() => checkMode('kernelspace', 'nftables')).toThrow(/mode is "kernelspace".*to-winkernel/)
  })

  test.each(['ebtables', 'constructor'])('%s is an error that names those that are there', (mode) => {
    expect(() => backendOfMode(mode)).toThrow(
      expect.objectContaining({
        code: 'unsupported',
        message: expect.stringMatching(new RegExp(`"${mode}".*nftables`)),
      }),
    )
  })
})

describe('the options of a backend in the kernel', () => {
  test.each([
    [['primary'], 0],
    [['10.0.0.0/8'], 0],
    [['all'], 0],
    [['localhost', '10.0.0.0/8'], 1],
    [['primary', '10.0.0.0/8'], 0],
  ])('nodePortAddresses %j', (nodePortAddresses, warned) => {
    const { settings } = resolveSettings({ file: { nodePortAddresses, clusterCidrs: ['10.0.0.0/8'] } })
    const { options, warnings } = kernelBackendOptions(settings)
    expect(options.nodePortAddresses).toEqual(nodePortAddresses)
    expect(warnings).toHaveLength(warned)
  })

  test.each([
    ['an empty cluster CIDR is warned about', {}, [expect.stringMatching(/--cluster-cidr.*NodeCIDR/)]],
    ['not if it is set', { clusterCidrs: ['10.0.0.0/8'] }, []],
    ['not if pods are recognised in another way', { detectLocalMode: 'NodeCIDR' as const }, []],
  ])('%s', (_, file, expected) => {
    expect(kernelBackendOptions(resolveSettings({ file }).settings).warnings).toEqual(expected)
  })

  test('invalid packets are dropped unless conntrack is liberal', () => {
    const dropInvalid = (conntrackTcpBeLiberal: boolean) =>
      kernelBackendOptions(resolveSettings({ file: { conntrackTcpBeLiberal } }).settings).options.dropInvalid
    expect([dropInvalid(false), dropInvalid(true)]).toEqual([true, false])
  })

  test('who is local', () => {
    const detectLocal = (file: Parameters<typeof resolveSettings>[0]['file'] & object) =>
      kernelBackendOptions(resolveSettings({ file }).settings).options.detectLocal
    expect(detectLocal({ clusterCidrs: ['10.0.0.0/8'] })).toEqual({ mode: 'ClusterCIDR', cidrs: ['10.0.0.0/8'] })
    expect(detectLocal({ detectLocalMode: 'NodeCIDR' })).toEqual({ mode: 'NodeCIDR' })
    expect(detectLocal({ detectLocalMode: 'BridgeInterface', bridgeInterface: 'b' })).toEqual({
      mode: 'BridgeInterface',
      name: 'b',
    })
    expect(detectLocal({ detectLocalMode: 'InterfaceNamePrefix', interfaceNamePrefix: 'p' })).toEqual({
      mode: 'InterfaceNamePrefix',
      prefix: 'p',
    })
  })
})
