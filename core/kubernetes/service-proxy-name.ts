import { isFields } from './fields.js'
import { labelsOf } from './metadata.js'

export const serviceProxyNameLabel = 'service.kubernetes.io/service-proxy-name'
export const headlessLabel = 'service.kubernetes.io/headless'

/** Which Services and EndpointSlices are a proxy's business (checklist 1-3). */
export interface ProxySelection {
  /** For the API server, so that what is for others never travels. Empty: no selector. */
  readonly serviceLabelSelector: string
  readonly serviceFieldSelector: string
  readonly sliceLabelSelector: string
  /** The same decision on an object, for sources without an API server and for servers that ignore a selector. */
  takesService(object: unknown): boolean
  takesSlice(object: unknown): boolean
  /**
   * Whether to know the cluster's service ranges. An address in them that no Service has is refused by the default proxy alone: to any
   * other it may well be a Service of that one.
   */
  readonly takesServiceCidrs: boolean
}

/**
 * @param serviceProxyName empty: the cluster's default proxy, which takes what no other proxy has been named for, and nothing
 *   headless. Otherwise a specialised proxy, which takes what carries its name, headless or not.
 */
export function selectionForProxy(serviceProxyName = ''): ProxySelection {
  if (serviceProxyName !== '') {
    const selector = `${serviceProxyNameLabel}=${serviceProxyName}`
    const takes = (object: unknown) => labelsOf(object)[serviceProxyNameLabel] === serviceProxyName
    return {
      serviceLabelSelector: selector,
      serviceFieldSelector: '',
      sliceLabelSelector: selector,
      takesService: takes,
      takesSlice: takes,
      takesServiceCidrs: false,
    }
  }
  const selector = `!${serviceProxyNameLabel},!${headlessLabel}`
  const takes = (object: unknown) => {
    const labels = labelsOf(object)
    return !Object.hasOwn(labels, serviceProxyNameLabel) && !Object.hasOwn(labels, headlessLabel)
  }
  return {
    serviceLabelSelector: selector,
    serviceFieldSelector: 'spec.clusterIP!=None',
    sliceLabelSelector: selector,
    takesService: (object) => takes(object) && !isHeadless(object),
    takesSlice: takes,
    takesServiceCidrs: true,
  }
}

function isHeadless(object: unknown): boolean {
  const spec = isFields(object) ? object.spec : undefined
  if (!isFields(spec)) return false
  return spec.clusterIP === 'None' || (Array.isArray(spec.clusterIPs) && spec.clusterIPs[0] === 'None')
}
