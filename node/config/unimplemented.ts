/**
 * Fields of a KubeProxyConfiguration that kpng does not use, and why. If one is set, the log names it as kube-proxy spells it. A name stands
 * for everything below it.
 */
export const unimplementedFields: { readonly [path: string]: string } = {
  'clientConnection.acceptContentTypes': 'kpng always asks for JSON',
  'clientConnection.contentType': 'kpng always speaks JSON',
  'clientConnection.qps': 'kpng has one watch per resource and needs no limit',
  'clientConnection.burst': 'kpng has one watch per resource and needs no limit',
  'logging.flushFrequency': 'kpng writes each line at once',
  'logging.vmodule': 'the verbosity is the same everywhere',
  'logging.options': 'kpng logs to standard error, unbuffered',
  showHiddenMetricsForVersion: 'kpng hides no metrics',
  'iptables.snatNodeInternalIP': 'the kernel chooses the source address',
  configSyncPeriod: 'kpng watches, and lists again only when it must',
  portRange: 'give --port-range to to-userspacelin',
  udpIdleTimeout: 'give --udp-idle-timeout to to-userspacelin',
  windowsRunAsService: 'register the service with the system instead',
}
