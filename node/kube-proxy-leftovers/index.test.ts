import { KpngError, type Log, silentLog } from '@kpng/api'
import { expect, test } from 'vitest'
import { removeKubeProxyLeftovers } from './index.js'
import type { RunProgram } from './program.js'

// Which programs are run, in which order, on machines with other programs than the test's.

type Answers = Readonly<Record<string, string | Error>>

/** A machine where programs print this, and where all others are missing. */
function machine(answers: Answers) {
  const lines: string[] = []
  const ran: string[] = []
  const said = (message: string, fields = {}) => lines.push([message, ...Object.values(fields)].join(' '))
  const log: Log = { ...silentLog, info: said, warn: said }
  const run: RunProgram = async (program, args) => {
    const command = [program, ...args].join(' ')
    const answer = answers[command]
    if (answer === undefined) return undefined
    ran.push(command)
    if (answer instanceof Error) throw answer
    return answer
  }
  return { lines, ran, log, run }
}

const services = '*nat\n:OUTPUT ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n-A OUTPUT -j KUBE-SERVICES\nCOMMIT\n'
const restore = '--noflush -w 10'

test('a machine without any of the programs: all are skipped, each with a line, and it does not claim that nothing is there', async () => {
  const { lines, ran, log, run } = machine({})
  const failure = removeKubeProxyLeftovers({ log, run })
  await expect(failure).rejects.toThrow(
    /^Cannot look for rules of kube-proxy: iptables-nft-save.* nft, ip, ipset are not/,
  )
  expect(ran).toEqual([])
  for (const program of ['iptables-nft-save', 'iptables-legacy-save', 'ip6tables-save', 'nft', 'ip', 'ipset']) {
    expect(lines).toContain(`Skipped: the program is not installed ${program}`)
  }
  expect(lines.join()).not.toMatch(/Found nothing|no kube-ipvs0/)
})

const everywhere: Answers = {
  'iptables-nft-save': '',
  'iptables-legacy-save': new KpngError('unsupported', 'Protocol not supported'),
  'ip6tables-nft-save': '',
  'ip6tables-legacy-save': '',
  'nft list tables': '',
  'ip -o link show': '',
  'ipset list -n': '',
}
const without = (...commands: string[]) =>
  Object.fromEntries(Object.entries(everywhere).filter(([command]) => !commands.includes(command)))
const unseen = 'everything was checked: these programs are not installed'

test.each<[string, Answers, string]>([
  ['everything was checked', everywhere, 'Found nothing of kube-proxy'],
  [
    'a part could not be checked',
    without('iptables-legacy-save', 'ipset list -n'),
    `Found nothing of kube-proxy, but not ${unseen} iptables-legacy-save ipset`,
  ],
  [
    'something was removed, and a part could not be checked',
    { ...without('ipset list -n'), 'nft list tables': 'table ip kube-proxy\n', 'nft delete table ip kube-proxy': '' },
    `Not ${unseen} ipset`,
  ],
  [
    'everything was checked, and something was removed',
    { ...everywhere, 'nft list tables': 'table ip kube-proxy\n', 'nft delete table ip kube-proxy': '' },
    "Removed kube-proxy's table nftables ip kube-proxy",
  ],
])('the last line when %s', async (_, answers, line) => {
  const { lines, log, run } = machine(answers)
  await removeKubeProxyLeftovers({ log, run })
  expect(lines.filter((text) => !text.startsWith('Skipped')).at(-1)).toBe(line)
})

test('without rights it says what to do', async () => {
  const denied = new KpngError('refused', '`nft list tables` failed: Operation not permitted (you must be root)')
  const { log, run } = machine({ ...everywhere, 'nft list tables': denied })
  await expect(removeKubeProxyLeftovers({ log, run })).rejects.toThrow(/nft list tables.* Run kpng as root or with/)
})

test('where iptables has no variants, the unnamed program is taken', async () => {
  const { ran, log, run } = machine({ 'iptables-save': services, [`iptables-restore ${restore}`]: '' })
  await removeKubeProxyLeftovers({ log, run })
  expect(ran).toEqual(['iptables-save', `iptables-restore ${restore}`])
})

test("mode ipvs: chains before sets; only kube-proxy's sets", async () => {
  const { ran, log, run } = machine({
    'iptables-nft-save': services,
    [`iptables-nft-restore ${restore}`]: '',
    'nft list tables': 'table ip kpng\n',
    'ip -o link show': '1: lo: <LOOPBACK> mtu 65536\n7: kube-ipvs0: <BROADCAST,NOARP> mtu 1500\n',
    'ip link delete kube-ipvs0': '',
    'ipset list -n': 'KUBE-SRC-ABC\nKUBE-CLUSTER-IP\nKUBE-6-LOAD-BALANCER-SOURCE-CID\nmine\n',
    'ipset destroy KUBE-CLUSTER-IP': '',
    'ipset destroy KUBE-6-LOAD-BALANCER-SOURCE-CID': '',
  })
  await removeKubeProxyLeftovers({ log, run })
  expect(ran.filter((command) => !/save|list|show/.test(command))).toEqual([
    `iptables-nft-restore ${restore}`,
    'ip link delete kube-ipvs0',
    'ipset destroy KUBE-CLUSTER-IP',
    'ipset destroy KUBE-6-LOAD-BALANCER-SOURCE-CID',
  ])
})

test("mode ipvs: what kpng's ipvs backend uses stays, and kube-proxy's sets go", async () => {
  const { ran, lines, log, run } = machine({
    'nft list tables': 'table ip kpng-ipvs\ntable ip6 kpng-ipvs\n',
    'ip -o link show': '7: kube-ipvs0: <BROADCAST,NOARP> mtu 1500\n',
    'ip link delete kube-ipvs0': '',
    'ipset list -n': 'KUBE-CLUSTER-IP\n',
    'ipset destroy KUBE-CLUSTER-IP': '',
  })
  await removeKubeProxyLeftovers({ log, run })
  expect(ran.filter((command) => !/save|list|show/.test(command))).toEqual(['ipset destroy KUBE-CLUSTER-IP'])
  expect(lines).toContain('Skipped virtual servers and kube-ipvs0: kpng uses them')
})

test.each<[string, Answers]>([
  ['there is no nft program', {}],
  ['nft fails', { 'nft list tables': new KpngError('refused', 'Operation not permitted') }],
])("mode ipvs: the interface may be that of kpng's ipvs backend and stays if %s", async (_, answers) => {
  const { ran, lines, log, run } = machine({
    ...answers,
    'ip -o link show': '7: kube-ipvs0: <BROADCAST,NOARP> mtu 1500\n',
    'ip link delete kube-ipvs0': '',
    'ipset list -n': '',
  })
  await removeKubeProxyLeftovers({ log, run }).catch(() => {})
  expect(ran).not.toContain('ip link delete kube-ipvs0')
  expect(lines).toContainEqual(expect.stringMatching(/^Skipped virtual servers and kube-ipvs0: kpng may use them/))
})

test('what fails does not stop the rest, and is told', async () => {
  const { ran, lines, log, run } = machine({
    'iptables-nft-save': services,
    [`iptables-nft-restore ${restore}`]: new KpngError('refused', 'iptables says no'),
    'iptables-legacy-save': new KpngError('unsupported', 'Protocol not supported'),
    'nft list tables':
      'table ip kube-proxy\ntable ip6 kube-proxy\ntable inet kube-proxy\ntable ip kube-proxy2\ntable ip kpng\n',
    'nft delete table ip kube-proxy': new KpngError('refused', 'nft says no'),
    'nft delete table ip6 kube-proxy': '',
    'nft delete table inet kube-proxy': '',
    'ip -o link show': new KpngError('refused', 'ip says no'),
  })
  const failure = removeKubeProxyLeftovers({ log, run })
  await expect(failure).rejects.toThrow('iptables says no; nft says no; ip says no')
  expect(ran.filter((command) => command.startsWith('nft delete'))).toHaveLength(3)
  expect(lines).toContain("Removed kube-proxy's table nftables ip6 kube-proxy")
  expect(lines).toContain('Skipped: the kernel does not support it iptables-legacy-save Protocol not supported')
})

test('a dry run prints the commands and runs none', async () => {
  const { ran, log, run } = machine({ 'iptables-nft-save': services, 'nft list tables': 'table ip kube-proxy\n' })
  const printed: string[] = []
  await removeKubeProxyLeftovers({ log, run, print: (text) => printed.push(text) })
  expect(ran).toEqual(['iptables-nft-save', 'nft list tables'])
  expect(printed.join('\n')).toBe(`iptables-nft-restore --noflush -w 10 <<'END'
*nat
:KUBE-SERVICES - [0:0]
-D OUTPUT -j KUBE-SERVICES
-X KUBE-SERVICES
COMMIT
END
nft delete table ip kube-proxy`)
})
