/**
 * What IPVS needs to serve as kube-proxy does.
 * @param kernel as uname prints it, such as `6.1.0-54-cloud-amd64`
 */
export function neededSysctls(strictArp: boolean, kernel: string): [name: string, value: number][] {
  const [major = 0, minor = 0] = kernel.split('.').map((part) => Number.parseInt(part, 10))
  // Since 5.9 a reused port does not make IPVS lose a connection (kubernetes #93297).
  const isOld = major < 5 || (major === 5 && minor < 9)
  return [
    // Without it, its connections cannot be masqueraded.
    ['net.ipv4.vs.conntrack', 1],
    ...(isOld ? [['net.ipv4.vs.conn_reuse_mode', 0] satisfies [string, number]] : []),
    // A connection to an endpoint that was removed ends, instead of hanging.
    ['net.ipv4.vs.expire_nodest_conn', 1],
    // A client with session affinity leaves an endpoint that gets no new connections.
    ['net.ipv4.vs.expire_quiescent_template', 1],
    ...(strictArp
      ? ([
          ['net.ipv4.conf.all.arp_ignore', 1],
          ['net.ipv4.conf.all.arp_announce', 2],
        ] satisfies [string, number][])
      : []),
  ]
}
