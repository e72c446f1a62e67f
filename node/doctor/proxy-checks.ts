import { type Check, check, counted, examplesOf, type Finding } from './finding.js'
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
      {
        level: 'note',
        what: `kube-proxy runs on this node (${names.join(', ')}).`,
        why: 'Only one of kube-proxy and kpng should serve a node.',
        todo,
        command: 'kpng doctor --migrate-from iptables   # or ipvs, nftables',
      },
    ]
  }
  return [
    {
      level: 'problem',
      what: `kube-proxy (${names.join(', ')}) and kpng both run on this node.`,
      why: 'The rules that the kernel asks first decide about each new connection. The two disagree whenever one is slower, and kpng cannot have the ports 10249 and 10256.',
      todo: `Keep one of them on this node. ${todo}`,
      command: 'kubectl -n kube-system get pods -o wide -l k8s-app=kube-proxy',
    },
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
      {
        level: 'problem',
        what: `${same.length} kpng serve ${whose} on this node.`,
        ...examplesOf(same.map(({ pid, backend = 'unknown backend' }) => `process ${pid}: ${backend}`)),
        why: 'Each of them writes rules for the same Services, and removes or repairs those of the other.',
        todo: 'Stop all but one, or give each its own --service-proxy-name.',
        command: `ps -o pid,ppid,lstart,args -p ${same.map(({ pid }) => pid).join(',')}`,
      },
    ]
  })
}

export function otherPrograms({ ports }: Pick<NodeFacts, 'ports'>): Finding[] {
  return ports
    .filter(({ owner }) => owner === 'another program')
    .map(({ port }) => ({
      level: 'warning',
      what: `Another program answers on port ${port}.`,
      why: 'kpng serves its health or metrics there, as kube-proxy does, and load balancers ask it.',
      todo: 'Find the program and move it, or give kpng other addresses (--healthz-bind-address, --metrics-bind-address).',
      command: `ss -ltnp 'sport = :${port}'`,
    }))
}

export function agentStates({ agents }: Pick<NodeFacts, 'agents'>): Finding[] {
  return agents.flatMap(({ path, problem, syncError, stale }): Finding[] => {
    if (problem !== undefined) {
      return [
        {
          level: 'note',
          what: `Nobody answers on ${path}.`,
          why: `A kpng that was killed leaves its socket behind. ${problem}`,
          todo: 'Nothing, if no kpng should run here. The next start removes the socket.',
          command: 'systemctl status kpng',
        },
      ]
    }
    return [
      ...(syncError === undefined
        ? []
        : [
            {
              level: 'problem' as const,
              what: `The last sync of the kpng on ${path} failed: ${syncError}`,
              why: 'Changes of Services do not reach the data plane.',
              todo: 'Read its status and its log. kpng tries again by itself.',
              command: `kpng status --agent-socket ${path}`,
            },
          ]),
      ...(stale === undefined
        ? []
        : [
            {
              level: 'warning' as const,
              what: `The state of the kpng on ${path} is not up to date: ${stale}`,
              why: 'It serves the last state that it has. New endpoints are not used, and old ones still are.',
              todo: 'Look at the connection to the API server or core.',
              command: `kpng status --agent-socket ${path}`,
            },
          ]),
    ]
  })
}

export function leftovers({ leftovers: found, ...running }: Pick<NodeFacts, 'leftovers'> & Running): Finding[] {
  // The rules of a proxy that runs are in use.
  if (found.length === 0 || kubeProxyRuns(running)) return []
  return [
    {
      level: 'warning',
      what: 'kube-proxy does not run here, and its rules are still there.',
      ...examplesOf(found),
      why: 'Nobody keeps them up to date. They send connections to pods that are gone, and refuse Services that had no endpoints then.',
      todo: 'Remove them when kpng serves this node. Look at the commands first.',
      command: 'kpng cleanup --kube-proxy --dry-run && kpng cleanup --kube-proxy',
    },
  ]
}

export function mixedFlavours({ iptables }: Pick<NodeFacts, 'iptables'>): Finding[] {
  const used = iptables.filter((saved) => rulesIn(saved).length > 0)
  const isMixed = (family: string) =>
    ['nft', 'legacy'].every((variant) => used.some(({ program }) => program === `${family}-${variant}`))
  if (!['iptables', 'ip6tables'].some(isMixed)) return []
  return [
    {
      level: 'warning',
      what: 'Both variants of iptables, nft and legacy, have rules.',
      ...examplesOf(used.map((saved) => `${saved.program}: ${counted(rulesIn(saved).length, 'rule')}`)),
      why: 'The kernel uses both, in an order that is hard to predict, and iptables shows only one. A rule that accepts or drops in the one is invisible in the other.',
      todo: 'Find out who writes the variant that the node does not use by default, and move it.',
      command: 'iptables --version; iptables-legacy-save; iptables-nft-save',
    },
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
