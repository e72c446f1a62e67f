import type { Finding } from '@kpng/api'
import { counted, examplesOf, found } from '@kpng/diagnose'
import { type Check, check } from './finding.js'
import { type NodeFacts, rulesIn } from './node-facts.js'

// Proxies that are in each other's way, and what they left behind.

type Running = Pick<NodeFacts, 'processes' | 'ports' | 'agents'>

const kubeProxyRuns = ({ processes, ports }: Pick<NodeFacts, 'processes' | 'ports'>): boolean =>
  processes.some(({ program }) => program === 'kube-proxy') || ports.some(({ owner }) => owner === 'kube-proxy')

const kpngRuns = ({ processes, agents }: Pick<NodeFacts, 'processes' | 'agents'>): boolean =>
  processes.some(({ program }) => program === 'kpng') || agents.some(({ problem }) => problem === undefined)

export function twoProxies(facts: Running): Finding[] {
  if (!kubeProxyRuns(facts)) return []
  const names = [
    ...facts.processes.filter(({ program }) => program === 'kube-proxy').map(({ pid }) => `process ${pid}`),
    ...facts.ports.filter(({ owner }) => owner === 'kube-proxy').map(({ port }) => `port ${port} answers`),
  ]
  const todo = 'To replace kube-proxy node by node, follow docs/replace-kube-proxy.md.'
  if (!kpngRuns(facts)) {
    return [
      found('KPNG-P001', `kube-proxy runs on this node (${names.join(', ')}).`, {
        todo,
        command: 'kpng doctor --migrate-from iptables   # or ipvs, nftables',
      }),
    ]
  }
  return [
    found('KPNG-P002', `kube-proxy (${names.join(', ')}) and kpng both run on this node.`, {
      todo: `Keep one of them on this node. ${todo}`,
      command: 'kubectl -n kube-system get pods -o wide -l k8s-app=kube-proxy',
    }),
  ]
}

export function twoKpng({ processes }: Pick<NodeFacts, 'processes'>): Finding[] {
  const kpng = processes.filter(({ program }) => program === 'kpng')
  const names = new Set(kpng.map(({ serviceProxyName = '' }) => serviceProxyName))
  return [...names].flatMap((name): Finding[] => {
    const same = kpng.filter(({ serviceProxyName = '' }) => serviceProxyName === name)
    if (same.length < 2) return []
    const whose = name === '' ? 'the default proxy' : `the service-proxy-name ${name}`
    return [
      found('KPNG-P003', `${same.length} kpng serve ${whose} on this node.`, {
        ...examplesOf(same.map(({ pid, backend = 'unknown backend' }) => `process ${pid}: ${backend}`)),
        command: `ps -o pid,ppid,lstart,args -p ${same.map(({ pid }) => pid).join(',')}`,
      }),
    ]
  })
}

export function otherPrograms({ ports }: Pick<NodeFacts, 'ports'>): Finding[] {
  return ports
    .filter(({ owner }) => owner === 'another program')
    .map(({ port }) =>
      found('KPNG-P004', `Another program answers on port ${port}.`, { command: `ss -ltnp 'sport = :${port}'` }),
    )
}

export function agentStates({ agents }: Pick<NodeFacts, 'agents'>): Finding[] {
  return agents.flatMap(({ path, problem, syncError, stale }): Finding[] => {
    if (problem !== undefined) {
      return [
        found('KPNG-P005', `Nobody answers on ${path}.`, {
          why: `A kpng that was killed leaves its socket behind. ${problem}`,
          command: 'systemctl status kpng',
        }),
      ]
    }
    return [
      ...(syncError === undefined
        ? []
        : [
            found('KPNG-P006', `The last sync of the kpng on ${path} failed: ${syncError}`, {
              command: `kpng status --agent-socket ${path}`,
            }),
          ]),
      ...(stale === undefined
        ? []
        : [
            found('KPNG-P007', `The state of the kpng on ${path} is not up to date: ${stale}`, {
              command: `kpng status --agent-socket ${path}`,
            }),
          ]),
    ]
  })
}

export function leftovers({ leftovers: left, ...running }: Pick<NodeFacts, 'leftovers'> & Running): Finding[] {
  // The rules of a proxy that runs are in use.
  if (left.length === 0 || kubeProxyRuns(running)) return []
  return [
    found('KPNG-P008', 'kube-proxy does not run here, and its rules are still there.', {
      ...examplesOf(left),
      command: 'kpng cleanup --kube-proxy --dry-run && kpng cleanup --kube-proxy',
    }),
  ]
}

export function mixedFlavours({ iptables }: Pick<NodeFacts, 'iptables'>): Finding[] {
  const used = iptables.filter((saved) => rulesIn(saved).length > 0)
  const isMixed = (family: string) =>
    ['nft', 'legacy'].every((variant) => used.some(({ program }) => program === `${family}-${variant}`))
  if (!['iptables', 'ip6tables'].some(isMixed)) return []
  return [
    found('KPNG-P009', 'Both variants of iptables, nft and legacy, have rules.', {
      ...examplesOf(used.map((saved) => `${saved.program}: ${counted(rulesIn(saved).length, 'rule')}`)),
      command: 'iptables --version; iptables-legacy-save; iptables-nft-save',
    }),
  ]
}

export const proxyChecks: readonly Check<NodeFacts>[] = [
  check('two proxies', ['processes', 'ports', 'agents'], twoProxies),
  check('two kpng', ['processes'], twoKpng),
  check('ports of a proxy', ['ports'], otherPrograms),
  check('the running kpng', ['agents'], agentStates),
  check("kube-proxy's leftovers", ['leftovers', 'processes', 'ports', 'agents'], leftovers),
  check('variants of iptables', ['iptables'], mixedFlavours),
]
