/** A program whose output is a file of the bundle. */
export interface BundleCommand {
  /** Of the file in the archive. */
  readonly path: string
  readonly program: string
  readonly args: readonly string[]
}

const mostEvents = 2000

/** The newest events of a log, the newest first. */
const events = (path: string, log: string, query?: string): BundleCommand => ({
  path: `logs/${path}.txt`,
  program: 'wevtutil',
  args: ['qe', log, `/c:${mostEvents}`, '/rd:true', '/f:text', ...(query === undefined ? [] : [`/q:${query}`])],
})

/** What HNS holds, and what it and the virtual switch have logged. */
export const windowsCommands: readonly BundleCommand[] = [
  ...['networks', 'endpoints', 'loadbalancers', 'namespaces'].map((list) => ({
    path: `hns/${list}.txt`,
    program: 'hnsdiag',
    args: ['list', list, '-d'],
  })),
  events('hns-admin', 'Microsoft-Windows-Host-Network-Service-Admin'),
  events('hns-operational', 'Microsoft-Windows-Host-Network-Service-Operational'),
  events('vmswitch-operational', 'Microsoft-Windows-Hyper-V-VmSwitch-Operational'),
  events('vmswitch-system', 'System', "*[System[Provider[@Name='Microsoft-Windows-Hyper-V-VmSwitch']]]"),
]

/** Of what `iptables-save` printed, the chains of kpng and Kubernetes and the rules that mention them. The rest is nobody's business. */
export function proxyRules(saved: string): string {
  let others = 0
  const lines = saved.split('\n').filter((line) => {
    const isOther = /^-A /.test(line) ? !/\bK(?:UBE|PNG)-/.test(line) : /^:(?!K(?:UBE|PNG)-)\S+ - /.test(line)
    if (isOther) others++
    return !isOther
  })
  return others === 0 ? saved : `${lines.join('\n')}# ${others} chains and rules of others are left out\n`
}

/** The rules of every variant of iptables. */
export const iptablesCommands: readonly BundleCommand[] = [
  'iptables-nft',
  'iptables-legacy',
  'ip6tables-nft',
  'ip6tables-legacy',
].map((variant) => ({ path: `rules/${variant}-save.txt`, program: `${variant}-save`, args: [] }))
