/** Feature gates by name, as a KubeProxyConfiguration and `--feature-gates` set them. */
type FeatureGates = Readonly<Record<string, boolean>>

/** Gates of kube-proxy 1.36 and 1.37 that kpng obeys. The values are kube-proxy's defaults. */
const obeyed = {
  /** Off: `spec.externalIPs` are not served. kube-proxy 1.40 turns it off. */
  AllowServiceExternalIPs: true,
  /** Off: mode ipvs is refused. kube-proxy 1.40 turns it off. */
  KubeProxyIPVS: true,
} as const

/** Gates about what is served that kube-proxy has locked, and what kpng does as if they were on. */
const alwaysOn: readonly string[] = [
  'KubeProxyDrainingTerminatingNodes',
  'LoadBalancerIPMode',
  'MultiCIDRServiceAllocator',
  'NFTablesProxyMode',
  'PreferSameTrafficDistribution',
  'ServiceTrafficDistribution',
  'TopologyAwareHints',
  'WinDSR',
  'WinOverlay',
]

/** Gates of kube-proxy that do not change what is served. */
const withoutMeaning: readonly string[] = [
  'AllAlpha',
  'AllBeta',
  'ClientsAllowCBOR',
  'ClientsPreferCBOR',
  'ComponentFlagz',
  'ComponentStatusz',
  'ContextualLogging',
  'InformerResourceVersion',
  'LoggingAlphaOptions',
  'LoggingBetaOptions',
  'WatchListClient',
]

/** Whether a gate that kpng obeys is on. */
export const isOn = (gates: FeatureGates, gate: keyof typeof obeyed): boolean => gates[gate] ?? obeyed[gate]

/** One sentence for each gate that is set and does not do what kube-proxy would make of it. */
export function gateWarnings(gates: FeatureGates): { readonly field: string; readonly message: string }[] {
  return Object.entries(gates).flatMap(([gate, value]) => {
    const field = `featureGates.${gate}`
    const why = whyWithoutEffect(gate, value)
    return why === undefined ? [] : { field, message: `${field} is ${value}, and has no effect here: ${why}.` }
  })
}

function whyWithoutEffect(gate: string, value: boolean): string | undefined {
  if (Object.hasOwn(obeyed, gate)) return undefined
  if (alwaysOn.includes(gate)) return value ? undefined : 'kpng always does what it stands for'
  if (withoutMeaning.includes(gate)) return 'it does not change which Services kpng serves, or how'
  const known = [...Object.keys(obeyed), ...alwaysOn].sort().join(', ')
  return `kpng knows no gate of this name. Check its spelling; those that matter here are ${known}`
}
