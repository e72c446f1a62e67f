import { type Fields, isFields, labelsOf } from './fields.js'
import { selectionForProxy, serviceProxyNameLabel } from './service-proxy-name.js'

/**
 * Why a proxy does not serve a Service that exists, as a sentence that follows "it is not served:". Undefined if it does, or if it
 * cannot be told from the object alone.
 * @param serviceProxyName of the proxy; empty for the cluster's default proxy
 */
export function whyNotServed(object: unknown, serviceProxyName: string): string | undefined {
  const spec: Fields = isFields(object) && isFields(object.spec) ? object.spec : {}
  const label = labelsOf(object)[serviceProxyNameLabel]
  if (serviceProxyName !== '' && label !== serviceProxyName) {
    return `it does not have the label ${serviceProxyNameLabel}=${serviceProxyName}, so it is not for this proxy.`
  }
  if (serviceProxyName === '' && label !== undefined) {
    return `it has the label ${serviceProxyNameLabel}=${String(label)}, so the proxy of that name serves it.`
  }
  if (spec.type === 'ExternalName') {
    return `it is of type ExternalName: a DNS name for ${String(spec.externalName)}. Clients go there directly, without a proxy.`
  }
  if (!selectionForProxy(serviceProxyName).takesService(object)) {
    return 'it is headless (clusterIP: None). Clients find the addresses of its pods in DNS and connect to them directly, without a proxy.'
  }
  const ips = Array.isArray(spec.clusterIPs) ? spec.clusterIPs : []
  if (ips.length === 0 && (spec.clusterIP ?? '') === '') return 'it has no cluster IP yet.'
  return undefined
}
