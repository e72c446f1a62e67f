import { type Family, families } from '@kpng/api'
import { addressOf, clusterIp, type Host, loadBalancerIp, nodeA, nodePort } from '../addresses.js'
import type { Action, Case } from './case.js'
import { inFamilies, keepsSource, masqueraded, oneStep, tcp } from './cells.js'
import { both, exposed, served, tcpPort } from './objects.js'

// Rules of others in the kernel: what they do to the packets of a Service, and what a proxy must leave to them.

const nftFamily: Readonly<Record<Family, 'ip' | 'ip6'>> = { IPv4: 'ip', IPv6: 'ip6' }

/** An address and a port, as rules have it. */
const placeText = (ip: string, port: number): string => (ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`)

/** Puts chains into a table of each family. A table of that name is replaced. */
function addChains(host: Host, table: string, chains: (family: Family, ip: 'ip' | 'ip6') => string): Action {
  const rules = families.map((family) => {
    const name = `${nftFamily[family]} kit-${table}`
    return `table ${name}\ndelete table ${name}\ntable ${name} {\n${chains(family, nftFamily[family])}\n}`
  })
  return { kind: 'run', host, script: `nft -f - <<'rules'\n${rules.join('\n')}\nrules\n` }
}

const removeChains = (host: Host, table: string): Action => ({
  kind: 'run',
  host,
  script: families.map((family) => `nft delete table ${nftFamily[family]} kit-${table}\n`).join(''),
})

/** What the port of a pod that does not belong to a Service is published at, as CNI plugins do it. */
const hostPort = 8999

const natChains = addChains(
  'node-a',
  'nat',
  (family, ip) => `
  chain host-ports {
    type nat hook prerouting priority dstnat; policy accept;
    fib daddr type local tcp dport ${hostPort} dnat to ${placeText(addressOf.a2[family], 8080)}
  }
  chain early {
    type nat hook prerouting priority -101; policy accept;
    ${ip} daddr ${clusterIp(218)[family]} tcp dport 80 dnat to ${placeText(addressOf.a2[family], 8080)}
  }
  chain late {
    type nat hook prerouting priority -99; policy accept;
    ${ip} daddr ${clusterIp(219)[family]} tcp dport 80 dnat to ${placeText(addressOf.a2[family], 8080)}
  }`,
)

const foreignNat: Case = {
  id: 'foreign-nat-rules',
  title:
    'Host ports of pods work beside node ports; of two rules for one address the one with the earlier priority decides',
  steps: [
    {
      after: 'others have nat chains',
      objects: [
        ...exposed('beside-host-ports', 217, ['a1']),
        ...served('after-foreign', 218, ['a1'], { ports: [tcpPort(80)] }),
        ...served('before-foreign', 219, ['a1'], { ports: [tcpPort(80)] }),
      ],
      actions: [natChains],
      cells: inFamilies([
        ['host-port', 'outside', tcp(nodeA, hostPort), keepsSource(['a2']), [79]],
        ['node-port', 'outside', tcp(nodeA, nodePort(217)), masqueraded(['a1']), [79]],
        ['load-balancer', 'outside', tcp(loadBalancerIp(217), 80), masqueraded(['a1']), [79]],
        ['earlier-chain', 'outside', tcp(clusterIp(218), 80), keepsSource(['a2']), [79]],
        ['later-chain', 'outside', tcp(clusterIp(219), 80), masqueraded(['a1']), [79]],
      ]),
    },
    { after: 'they are gone', objects: [], actions: [removeChains('node-a', 'nat')], cells: [] },
  ],
}

/** kube-proxy's mark, and kpng's: bit 14. */
const masqueradeMark = '0x4000'

const mark: Case = {
  id: 'masquerade-mark',
  title: 'Packets leave the node without the mark of masquerading',
  steps: [
    {
      after: 'somebody drops what leaves with the mark',
      objects: exposed('masquerade-mark', 220, both),
      actions: [
        addChains(
          'node-a',
          'mark',
          (family, ip) => `
  chain late {
    type filter hook postrouting priority 200; policy accept;
    ct original ${ip} daddr ${loadBalancerIp(220)[family]} meta mark & ${masqueradeMark} != 0 drop
  }`,
        ),
      ],
      cells: inFamilies([['outside', 'outside', tcp(loadBalancerIp(220), 80), masqueraded(both), [58]]]),
    },
    { after: 'nobody does', objects: [], actions: [removeChains('node-a', 'mark')], cells: [] },
  ],
}

/**
 * The endpoint sends each segment as it is, and then with two other sequence numbers, half the range of them apart. To conntrack one of these is data
 * that came already, and the other one is beyond the window: that one is invalid, and its address is not translated. A client that gets it answers with a
 * reset, which ends the connection.
 */
const strayPackets = addChains(
  'a1',
  'stray',
  (family) => `
  chain stray {
    dup to ${addressOf['node-a'][family]} device "eth0" tcp sequence set 7
    dup to ${addressOf['node-a'][family]} device "eth0" tcp sequence set ${2 ** 31 + 7}
  }
  chain output {
    type filter hook output priority 0; policy accept;
    meta mark 1 accept
    tcp sport 9090 tcp flags & (syn | fin | rst) == 0 meta mark set 1 jump stray
  }`,
)

const invalid: Case = {
  id: 'invalid-packets',
  title: 'Packets outside the window of a connection do not end it',
  steps: [[], [strayPackets], [removeChains('a1', 'stray')]].map((actions, step) => ({
    after: ['start', 'the endpoint sends invalid packets', 'it has stopped'][step] as string,
    // The client's address is kept. Of a masqueraded connection, the node itself gets the invalid packets.
    objects: exposed('invalid-packets', 216, ['a1'], {
      ports: [tcpPort(80, { targetPort: 9090, nodePort: nodePort(216) })],
      spec: { externalTrafficPolicy: 'Local' },
    }),
    actions,
    cells: inFamilies([
      ['pod-a', 'pod-a', tcp(clusterIp(216), 80), keepsSource(['a1']), [86], { flow: 'pod-a' }],
      ['outside', 'outside', tcp(nodeA, nodePort(216)), keepsSource(['a1']), [86], { flow: 'outside' }],
    ]),
  })),
}

/** Removes all rules, of everybody. */
export const flushRules = `nft flush ruleset || true
for iptables in iptables-legacy ip6tables-legacy; do
  command -v $iptables > /dev/null || continue
  for table in nat mangle filter raw; do
    $iptables -t $table -F && $iptables -t $table -X || true
  done
done
`

const drift: Case = oneStep({
  id: 'rules-flushed',
  title: 'A firewall that flushes all rules: the proxy writes its own again',
  alone: true,
  objects: exposed('rules-flushed', 221, ['a1']),
  actions: [{ kind: 'run', host: 'node-a', script: flushRules }],
  // A proxy may look at its rules rarely, to save the time of the machine.
  settleMs: 60_000,
  cells: [
    ['pod-a', 'pod-a', tcp(clusterIp(221), 80), keepsSource(['a1']), [66]],
    ['node-a', 'node-a', tcp(clusterIp(221), 80), masqueraded(['a1']), [66]],
    ['node-port', 'outside', tcp(nodeA, nodePort(221)), masqueraded(['a1']), [66]],
    ['load-balancer', 'outside', tcp(loadBalancerIp(221), 80), masqueraded(['a1']), [66]],
  ],
})

export const foreignRuleCases: readonly Case[] = [foreignNat, mark, invalid, drift]
