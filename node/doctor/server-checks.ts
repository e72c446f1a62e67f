import type { CertificateFact, ClusterFacts } from './cluster-facts.js'
import { counted, type Finding } from './finding.js'

// The API server, and what this machine needs to talk to it.

const lowestMinor = 24

export function server({ server: { url, problem, version } }: Pick<ClusterFacts, 'server'>): Finding[] {
  if (problem !== undefined) {
    return [
      {
        level: 'problem',
        what: `The API server cannot be asked: ${problem}`,
        why: 'kpng serves the last state that it has, and no change arrives. A kpng that starts now serves nothing.',
        todo: 'Check the address, the network and the credentials.',
        command: url === '' ? 'kubectl config view --minify' : `curl -k ${url}/version`,
      },
    ]
  }
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version ?? '') ?? []
  if (major === undefined || Number(major) > 1 || Number(minor) >= lowestMinor) return []
  return [
    {
      level: 'warning',
      what: `The API server is ${version}. kpng supports 1.${lowestMinor} or newer.`,
      why: 'Fields and resources that kpng relies on may be missing.',
      todo: 'Update the cluster, or stay with its own kube-proxy.',
      command: 'kubectl version',
    },
  ]
}

export function clock({ clockAheadMs }: Pick<ClusterFacts, 'clockAheadMs'>): Finding[] {
  const seconds = Math.round(Math.abs(clockAheadMs) / 1000)
  if (seconds < 10) return []
  return [
    {
      level: seconds >= 300 ? 'problem' : 'warning',
      what: `This machine's clock is ${seconds} s ${clockAheadMs > 0 ? 'behind' : 'ahead of'} that of the API server.`,
      why: 'Certificates and tokens are refused when clocks differ by minutes, and measured delays are wrong.',
      todo: 'Synchronize the clock.',
      command: 'timedatectl status; chronyc makestep',
    },
  ]
}

const dayMs = 86_400_000

/** Certificates that live for hours are renewed when a fifth of their life is left; none is reported earlier than 30 days before its end. */
const soonMs = ({ validFromMs, validToMs }: CertificateFact): number =>
  Math.min(30 * dayMs, (validToMs - validFromMs) / 5)

export function certificates({ certificates: all }: Pick<ClusterFacts, 'certificates'>, nowMs: number): Finding[] {
  return all.flatMap((certificate): Finding[] => {
    const { where, subject, validFromMs, validToMs } = certificate
    const name = `The certificate ${subject} (${where})`
    const day = (ms: number) => new Date(ms).toISOString().slice(0, 16).replace('T', ' ')
    const rest = {
      why: 'Without valid certificates kpng and its peers refuse to talk to each other.',
      todo: 'Renew it. kpng reads the file again by itself.',
      command: 'kubeadm certs check-expiration',
    }
    if (nowMs > validToMs) return [{ level: 'problem', what: `${name} ended on ${day(validToMs)} UTC.`, ...rest }]
    if (nowMs < validFromMs) {
      const what = `${name} is not valid before ${day(validFromMs)} UTC.`
      return [{ level: 'problem', what, ...rest, todo: "Check this machine's clock.", command: 'timedatectl status' }]
    }
    if (validToMs - nowMs > soonMs(certificate)) return []
    const days = Math.floor((validToMs - nowMs) / dayMs)
    const left = days > 0 ? counted(days, 'day') : 'less than a day'
    return [{ level: 'warning', what: `${name} ends in ${left}, on ${day(validToMs)} UTC.`, ...rest }]
  })
}

export function rights({ rights: all }: Pick<ClusterFacts, 'rights'>): Finding[] {
  const missing = all.filter(({ isAllowed }) => !isAllowed)
  const described = ({ verb, group, resource }: (typeof all)[number]) =>
    `${verb} ${resource}${group === '' ? '' : `.${group}`}`
  // kpng works without these two: see the sources.
  const isOptional = ({ resource }: (typeof all)[number]) => resource === 'servicecidrs' || resource === 'events'
  const finding = (level: Finding['level'], of: typeof missing, why: string): Finding[] =>
    of.length === 0
      ? []
      : [
          {
            level,
            what: `This user may not do ${counted(of.length, 'thing')} that kpng does.`,
            examples: of.map(described),
            why,
            todo: "If these are kpng's own credentials, apply its ClusterRole. With your own, ask for kpng's account instead.",
            command: `kubectl auth can-i ${of[0] && described(of[0])} --as system:serviceaccount:kube-system:kpng\nkubectl apply -f deploy/base/rbac/rbac.yaml`,
          },
        ]
  return [
    ...finding(
      'problem',
      missing.filter((right) => !isOptional(right)),
      'kpng cannot see what it should serve.',
    ),
    ...finding(
      'warning',
      missing.filter(isOptional),
      'kpng works without them: it posts no Events, and it does not refuse unused cluster IPs.',
    ),
  ]
}
