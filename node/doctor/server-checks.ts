import type { Finding } from '@kpng/api'
import { counted, found } from '@kpng/diagnose'
import type { CertificateFact, ClusterFacts } from './cluster-facts.js'

// The API server, and what this machine needs to talk to it.

const lowestMinor = 24

export function server({ server: { url, problem, version } }: Pick<ClusterFacts, 'server'>): Finding[] {
  if (problem !== undefined) {
    return [
      found('KPNG-C001', `The API server cannot be asked: ${problem}`, {
        command: url === '' ? 'kubectl config view --minify' : `curl -k ${url}/version`,
      }),
    ]
  }
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version ?? '') ?? []
  if (major === undefined || Number(major) > 1 || Number(minor) >= lowestMinor) return []
  return [
    found('KPNG-C002', `The API server is ${version}. kpng supports 1.${lowestMinor} or newer.`, {
      command: 'kubectl version',
    }),
  ]
}

export function clock({ clockAheadMs }: Pick<ClusterFacts, 'clockAheadMs'>): Finding[] {
  const seconds = Math.round(Math.abs(clockAheadMs) / 1000)
  if (seconds < 10) return []
  return [
    found(
      'KPNG-C003',
      `This machine's clock is ${seconds} s ${clockAheadMs > 0 ? 'behind' : 'ahead of'} that of the API server.`,
      { level: seconds >= 300 ? 'problem' : 'warning', command: 'timedatectl status; chronyc makestep' },
    ),
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
    const renew = { command: 'kubeadm certs check-expiration' }
    if (nowMs > validToMs) return [found('KPNG-C004', `${name} ended on ${day(validToMs)} UTC.`, renew)]
    if (nowMs < validFromMs) {
      const what = `${name} is not valid before ${day(validFromMs)} UTC.`
      return [found('KPNG-C005', what, { command: 'timedatectl status' })]
    }
    if (validToMs - nowMs > soonMs(certificate)) return []
    const days = Math.floor((validToMs - nowMs) / dayMs)
    const left = days > 0 ? counted(days, 'day') : 'less than a day'
    return [found('KPNG-C006', `${name} ends in ${left}, on ${day(validToMs)} UTC.`, renew)]
  })
}

export function rights({ rights: all }: Pick<ClusterFacts, 'rights'>): Finding[] {
  const missing = all.filter(({ isAllowed }) => !isAllowed)
  const described = ({ verb, group, resource }: (typeof all)[number]) =>
    `${verb} ${resource}${group === '' ? '' : `.${group}`}`
  // kpng works without these two: see the sources.
  const isOptional = ({ resource }: (typeof all)[number]) => resource === 'servicecidrs' || resource === 'events'
  const finding = (code: 'KPNG-C010' | 'KPNG-C011', of: typeof missing): Finding[] => {
    const [first] = of
    if (!first) return []
    const command = `kubectl auth can-i ${described(first)} --as system:serviceaccount:kube-system:kpng\nkubectl apply -f deploy/base/rbac/rbac.yaml`
    const what = `This user may not do ${counted(of.length, 'thing')} that kpng does.`
    return [found(code, what, { examples: of.map(described), command })]
  }
  return [
    ...finding(
      'KPNG-C010',
      missing.filter((right) => !isOptional(right)),
    ),
    ...finding('KPNG-C011', missing.filter(isOptional)),
  ]
}
