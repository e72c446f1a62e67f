// Writes the rules that kube-proxy's iptables mode writes for the same Services, in the way in which it writes them: one chain per Service
// and one per endpoint, without comments about endpoints since there are more than 1,000; after a change the chains of the changed Service
// and all shared chains. kube-proxy's own work is not counted: this is the least that it can take.
import { createHash } from 'node:crypto'
import { runProgram } from '@kpng/linux'

const encode = (text) => {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
  return [...createHash('sha256').update(text).digest().subarray(0, 16)].map((byte) => letters[byte & 31]).join('')
}

export class KubeProxyRules {
  #program
  #endpointChains = new Map()

  constructor(flavour) {
    this.#program = `iptables-${flavour}-restore`
  }

  async setup() {}

  async sync(view, { full, services: changed }) {
    const chains = []
    const rules = []
    const stale = []
    const services = []
    for (const [path, { service, endpoints }] of view.services) {
      const [ip] = service.ips.clusterIps.v4
      const name = `${path}:http`
      const chain = `KUBE-SVC-${encode(name)}`
      const match = `-m comment --comment "${name} cluster IP" -m tcp -p tcp -d ${ip} --dport 80`
      services.push(`-A KUBE-SERVICES ${match} -j ${chain}`)
      if (!full && !changed.has(path)) continue
      chains.push(chain)
      rules.push(`-A ${chain} ${match} ! -s 100.64.0.0/10 -j KUBE-MARK-MASQ`)
      const own = new Set()
      endpoints.forEach((endpoint, index) => {
        const [address] = endpoint.ips.v4
        const endpointChain = `KUBE-SEP-${encode(`${name}${address}`)}`
        const left = endpoints.length - index
        const draw = left === 1 ? '' : `-m statistic --mode random --probability ${(1 / left).toFixed(10)} `
        own.add(endpointChain)
        chains.push(endpointChain)
        rules.push(`-A ${chain} ${draw}-j ${endpointChain}`)
        rules.push(`-A ${endpointChain} -s ${address} -j KUBE-MARK-MASQ`)
        rules.push(`-A ${endpointChain} -m tcp -p tcp -j DNAT --to-destination ${address}:8080`)
      })
      for (const before of this.#endpointChains.get(path) ?? []) if (!own.has(before)) stale.push(before)
      this.#endpointChains.set(path, own)
    }
    // The chains that it writes each time.
    const shared = ['KUBE-SERVICES', 'KUBE-NODEPORTS', 'KUBE-POSTROUTING', 'KUBE-MARK-MASQ']
    const input = [
      '*filter',
      ...['KUBE-SERVICES', 'KUBE-EXTERNAL-SERVICES', 'KUBE-FORWARD', 'KUBE-NODEPORTS', 'KUBE-PROXY-FIREWALL'].map(
        declare,
      ),
      '-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP',
      '-A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT',
      '-A KUBE-FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
      'COMMIT',
      '*nat',
      ...[...shared, ...chains, ...stale].map(declare),
      '-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN',
      '-A KUBE-POSTROUTING -j MARK --xor-mark 0x4000',
      '-A KUBE-POSTROUTING -j MASQUERADE --random-fully',
      '-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000',
      ...services,
      '-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS',
      ...rules,
      ...stale.map((chain) => `-X ${chain}`),
      'COMMIT',
      '',
    ].join('\n')
    const { code, errors } = await runProgram(this.#program, ['--noflush', '--counters', '--wait=10'], {
      input,
      limitMs: 600_000,
    })
    if (code !== 0) throw new Error(`${this.#program}: ${errors}`)
  }
}

const declare = (chain) => `:${chain} - [0:0]`
