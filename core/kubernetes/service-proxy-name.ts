import { isFields, labelsOf } from './fields.js'

export const serviceProxyNameLabel = 'service.kubernetes.io/service-proxy-name'
export const headlessLabel = 'service.kubernetes.io/headless'

/**
 * Which Services and EndpointSlices a proxy takes (checklist 1-3). As in kube-proxy, each label is looked at on one kind only:
 * service-proxy-name on Services, headless on EndpointSlices. A slice is served if this proxy takes the Service that it names.
 */
export interface ProxySelection {
  /** For the API server, so that it does not send what other proxies serve. Empty: no selector. */
  readonly serviceLabelSelector: string
  readonly serviceFieldSelector: string
  readonly sliceLabelSelector: string
  /** The same decision on an object, for sources without an API server and for servers that ignore a selector. */
  takesService(object: unknown): boolean
  takesSlice(object: unknown): boolean
  /**
   * Whether to read the cluster's service CIDRs. The default proxy refuses traffic to an address in them that no Service has.
   * A specialised proxy must not: the address may belong to a Service of the default proxy.
   */
  readonly takesServiceCidrs: boolean
}

/**
 * @param serviceProxyName empty: the cluster's default proxy, which takes the Services without a proxy name that are not
 *   headless. Otherwise a specialised proxy, which takes the Services with its name, headless ones too.
 */
export function selectionForProxy(serviceProxyName = ''): ProxySelection {
  if (serviceProxyName !== '') {
    return {
      serviceLabelSelector: `${serviceProxyNameLabel}=${serviceProxyName}`,
      serviceFieldSelector: '',
      // All slices: hand-made ones need not carry the label of their Service, and those of headless Services are wanted too.
      sliceLabelSelector: '',
      takesService: (object) => labelsOf(object)[serviceProxyNameLabel] === serviceProxyName,
      takesSlice: () => true,
      takesServiceCidrs: false,
    }
  }
  return {
    serviceLabelSelector: `!${serviceProxyNameLabel}`,
    serviceFieldSelector: 'spec.clusterIP!=None',
    sliceLabelSelector: `!${headlessLabel}`,
    takesService: (object) => !Object.hasOwn(labelsOf(object), serviceProxyNameLabel) && !isHeadless(object),
    takesSlice: (object) => !Object.hasOwn(labelsOf(object), headlessLabel),
    takesServiceCidrs: true,
  }
}

function isHeadless(object: unknown): boolean {
  const spec = isFields(object) ? object.spec : undefined
  if (!isFields(spec)) return false
  return spec.clusterIP === 'None' || (Array.isArray(spec.clusterIPs) && spec.clusterIPs[0] === 'None')
}
