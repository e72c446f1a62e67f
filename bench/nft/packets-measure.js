// What rules cost a packet, in a network namespace of its own. Datagrams go to a link on which nobody has the address that they
// are sent to, so that little but sending is measured.
// Arguments: ruleset (none, kpng or chains), services, endpoints each. Prints JSON.
import { spawnSync } from 'node:child_process'
import koffi from 'koffi'
import { chainRuleset, emptyRuleset } from './chain-ruleset.js'
import { makeView, nothing } from './view.js'

const [ruleset, services, endpointsEach] = process.argv
  .slice(2)
  .map((text) => (/^\d+$/.test(text) ? Number(text) : text))
const sourcePorts = 12
const rounds = 20_000

const libc = koffi.load(null)
const socket = libc.func('int socket(int, int, int)')
const sendto = libc.func('long sendto(int, const void *, size_t, int, const void *, int)')
const close = libc.func('int close(int)')

function run(command, args, input) {
  const { status, stderr } = spawnSync(command, args, { input })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`)
}

const commands = [
  'link set lo up',
  'link add out type veth peer name sink',
  'link set out up',
  'link set sink up',
  'address add 172.30.0.1/24 dev out',
]
run(
  'ip',
  ['-batch', '-'],
  `${[...commands, 'neigh add 172.30.0.2 lladdr 02:00:00:00:00:01 dev out', 'route add default via 172.30.0.2'].join('\n')}\n`,
)

const view = makeView(services, endpointsEach)
const udp = 2
for (const { service } of view.services.values()) service.ports[0].protocol = udp
if (ruleset === 'kpng') {
  const { nftBackend } = await import('../../backends/nft/dist/index.js')
  const backend = nftBackend({ detectLocal: { mode: 'ClusterCIDR', cidrs: ['100.0.0.0/8'] }, driftCheckIntervalMs: 0 })
  await backend.setup({ requestFullSync: () => {} })
  await backend.sync(view, { ...nothing, full: true })
} else run('nft', ['-f', '-'], ruleset === 'chains' ? chainRuleset(view) : emptyRuleset)

const destinations = [...view.services.values()].map(({ service }) => {
  const address = Buffer.alloc(16)
  address.writeUInt16LE(2, 0)
  address.writeUInt16BE(80, 2)
  address.set(service.ips.clusterIps.v4[0].split('.').map(Number), 4)
  return address
})
const payload = Buffer.alloc(64)

/** Nanoseconds for each of so many datagrams. */
function timed(count, send) {
  const started = process.hrtime.bigint()
  for (let index = 0; index < count; index++)
    if (send(index) < 0) throw new Error(`A datagram was not sent: errno ${koffi.errno()}`)
  return Number(process.hrtime.bigint() - started) / count
}

const first = []
const later = []
for (let port = 0; port < sourcePorts; port++) {
  const fd = socket(2, 2, 0)
  first.push(timed(destinations.length, (index) => sendto(fd, payload, 64, 0, destinations[index], 16)))
  later.push(timed(rounds, () => sendto(fd, payload, 64, 0, destinations[0], 16)))
  close(fd)
}
// The first ones compile the code and fill the caches; the median forgives what else the machine does.
const median = (values) => values.slice(2).sort((a, b) => a - b)[Math.floor((values.length - 2) / 2)]
console.log(JSON.stringify({ ruleset, services, firstNs: median(first), laterNs: median(later) }))
process.exit(0)
