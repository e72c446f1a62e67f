import type { Family } from '@kpng/api'
import type { Hook } from '@kpng/linux/bpf'
import {
  Assembler,
  fp,
  type MapReference,
  type Memory,
  type Program,
  type Register,
  r0,
  r1,
  r2,
  r3,
  r4,
  r6,
  r7,
  r8,
  r9,
  u16,
  u32,
  u64,
} from './assembler/assembler.js'
import { client, endpoint, type MapName, nodeAddress, peer, remembered, set, setFlags, slot, TCP } from './layout.js'

// connect:      key = { the address that the socket asks for, its port, TCP }
//               set = frontends[key]
//                  or frontends[{ :: or ::ffff:0.0.0.0, port, TCP }], if nodeAddresses[address] allows it to this network namespace
//                  or: leave the socket to nftables
//               if the set has session affinity, and clients[namespace, set] is younger than its timeout,
//                  and that endpoint still serves the set: use it
//               else: { base, count } = the set's run, in one load; count 0: leave it to nftables
//                  endpoint = endpoints[slots[base + random % count]]; remember it for the client
//               peers[socket] = { endpoint, what it asked for }
//               the socket connects to the endpoint
// getpeername:  if peers[socket] has this endpoint: answer what the socket asked for
//
// Both always return 1: 0 would refuse the call. r6 is the context, r7 the set, r8 the endpoint.

export interface ProgramOptions {
  readonly maps: Readonly<Record<MapName, MapReference>>
  /** The cookie of the network namespace in which node ports are open on loopback addresses. */
  readonly hostNamespace: bigint
  /** Whether sockets know which Service they asked for. Needs the getpeername hooks. */
  readonly keepsPeers: boolean
  /** Whether connections are counted per set. */
  readonly counts: boolean
  /** For tests: code between two steps, to make the time between them longer. */
  readonly pause?: (assembler: Assembler) => void
}

export const programFor = (hook: Hook, options: ProgramOptions): Program => {
  const family = hook.endsWith('6') ? 'IPv6' : 'IPv4'
  return hook.startsWith('connect') ? connectProgram(family, options) : getpeernameProgram(family, options)
}

/** struct bpf_sock_addr. The port is in network order, in the lower half of 4 bytes. */
const context = { ipv4: 4, ipv6: 8, port: 24, protocol: 36, socket: 64 } as const

/** What the programs have on the stack. */
const stack = {
  /** A frontend's key: the address, then port and protocol. */
  key: u32(fp, -24),
  portAndProtocol: u32(fp, -8),
  /** A slot's number, then an endpoint's. */
  number: u32(fp, -4),
  nodePortKey: u64(fp, -48),
  nodePortAndProtocol: u32(fp, -32),
  set: u32(fp, -28),
  client: u64(fp, -64),
  remembered: u64(fp, -80),
} as const

const part = ({ base, offset }: Memory, at: number, of: (base: Register, offset: number) => Memory): Memory =>
  of(base, offset + at)

const nsPerSecond = 1_000_000_000
/** The fractional part of the golden ratio: multiplied by it, neighbouring cookies are far apart. */
const goldenRatio = 0x9e37_79b9_7f4a_7c15n

function connectProgram(family: Family, options: ProgramOptions): Program {
  const { maps, counts, keepsPeers, pause = () => {} } = options
  const a = new Assembler()
  a.set(r6, r1)
  // 262 is MPTCP. Its lower byte is that of TCP.
  a.load(r1, u32(r6, context.protocol)).compute(r1, '&', 0xff).when(r1, '!=', TCP, 'leave')
  findSet(a, family, options)
  a.label('has set').store(stack.set, r9)
  a.lookup(maps.sets, stack.set, 'leave').set(r7, r0)
  useRemembered(a, maps)
  a.label('draw')
  pause(a)
  drawEndpoint(a, maps, pause)
  remember(a, maps)
  a.label('use')
  if (counts) a.set(r1, 1).addAtomically(u64(r7, set.connections), r1)
  if (keepsPeers) keepPeer(a, maps)
  a.label('rewrite')
  rewrite(a, family, r8, endpoint, pause)
  return a.label('leave').exit(1).program()
}

/** r9 = the number of the set for what the socket asks for. A node port of IPv4 may be asked for by a socket of IPv6. */
function findSet(a: Assembler, family: Family, { maps, hostNamespace }: ProgramOptions): void {
  contextAddress(a, family, stack.key)
  a.load(r9, u32(r6, context.port)).compute(r9, '|', TCP << 16)
  a.store(stack.portAndProtocol, r9)
  a.lookup(maps.frontends, stack.key, 'is node port?')
  a.load(r9, u32(r0)).jump('has set')
  a.label('is node port?')
  a.store(stack.nodePortKey, 0)
    .store(part(stack.nodePortKey, 8, u64), 0)
    .store(stack.nodePortAndProtocol, r9)
  if (family === 'IPv6') {
    a.load(r1, part(stack.key, 0, u64)).when(r1, '!=', 0, 'look up node port')
    a.load(r1, part(stack.key, 8, u32))
      .setWide(r2, BigInt(mappedWord >>> 0))
      .when(r1, '!=', r2, 'look up node port')
  }
  a.store(part(stack.nodePortKey, 8, u32), mappedWord)
  if (family === 'IPv6') a.label('look up node port')
  a.lookup(maps.frontends, stack.nodePortKey, 'leave').load(r9, u32(r0))
  a.lookup(maps.nodeAddresses, stack.key, 'leave').load(r1, u32(r0))
  a.when(r1, '!=', nodeAddress.onlyHost, 'has set')
  a.set(r1, r6).call('networkNamespaceCookie')
  a.setWide(r2, hostNamespace).when(r0, '!=', r2, 'leave')
}

/** Goes on at "use" with r8 = the endpoint that the client had, if it still counts; else at "draw". */
function useRemembered(a: Assembler, maps: ProgramOptions['maps']): void {
  // Whether it is known is decided here once: the set's seconds may change while the program runs.
  a.store(stack.client, 0).store(part(stack.client, client.set, u64), 0)
  a.load(r9, u32(r7, set.affinitySeconds)).when(r9, '==', 0, 'draw')
  a.set(r1, r6).call('networkNamespaceCookie').store(stack.client, r0)
  a.copy(4, part(stack.client, client.set, u32), stack.set)
  a.store(part(stack.client, client.isKnown, u32), 1)
  a.lookup(maps.clients, stack.client, 'draw').set(r8, r0)
  a.call('coarseMonotonicTime').set(r2, r0)
  a.load(r1, u64(r8, remembered.atNs)).compute(r0, '-', r1)
  a.compute(r9, '*', nsPerSecond).when(r0, '>', r9, 'draw')
  a.store(u64(r8, remembered.atNs), r2)
  a.copy(4, stack.number, u32(r8, remembered.endpoint))
  a.lookup(maps.endpoints, stack.number, 'draw').set(r8, r0)
  a.load(r1, u32(r8, endpoint.set)).load(r2, stack.set).when(r1, '==', r2, 'use')
}

/** r8 = an endpoint of the set */
function drawEndpoint(a: Assembler, maps: ProgramOptions['maps'], pause: (a: Assembler) => void): void {
  a.load(r8, u64(r7, set.run)).set(r9, r8).compute(r9, '>>', 32).when(r9, '==', 0, 'leave')
  pause(a)
  a.load(r1, u32(r7, set.flags)).when(r1, '&', setFlags.hash, 'by hash')
  a.call('random').jump('drawn')
  a.label('by hash').set(r1, r6).call('networkNamespaceCookie')
  a.setWide(r1, goldenRatio).compute(r0, '*', r1).compute(r0, '>>', 32)
  // The lower half of r8 is the base of the run; the store below takes the lower half of the sum.
  a.label('drawn').compute(r0, '%', r9).compute(r0, '+', r8).store(stack.number, r0)
  a.lookup(maps.slots, stack.number, 'leave').copy(4, stack.number, u32(r0, slot.endpoint))
  pause(a)
  a.lookup(maps.endpoints, stack.number, 'leave').set(r8, r0)
  pause(a)
}

function remember(a: Assembler, maps: ProgramOptions['maps']): void {
  a.load(r1, part(stack.client, client.isKnown, u32)).when(r1, '==', 0, 'use')
  a.call('coarseMonotonicTime').store(stack.remembered, r0)
  a.store(part(stack.remembered, remembered.endpoint, u64), 0)
  a.copy(4, part(stack.remembered, remembered.endpoint, u32), stack.number)
  a.setMap(r1, maps.clients).address(r2, stack.client).address(r3, stack.remembered).set(r4, 0).call('mapUpdate')
}

const BPF_SK_STORAGE_GET_F_CREATE = 1

function keepPeer(a: Assembler, maps: ProgramOptions['maps']): void {
  a.setMap(r1, maps.peers).load(r2, u64(r6, context.socket)).set(r3, 0).set(r4, BPF_SK_STORAGE_GET_F_CREATE)
  a.call('socketStorage').when(r0, '==', 0, 'rewrite')
  a.copy(16, u32(r0, peer.endpoint), u32(r8, endpoint.address))
  a.load(r1, u16(r8, endpoint.port)).store(u32(r0, peer.endpoint + peer.port), r1)
  a.copy(16, u32(r0, peer.service), stack.key)
  a.load(r1, u32(r6, context.port)).store(u32(r0, peer.service + peer.port), r1)
}

function getpeernameProgram(family: Family, { maps }: ProgramOptions): Program {
  const a = new Assembler()
  a.set(r6, r1)
  contextAddress(a, family, stack.key)
  a.copy(4, stack.portAndProtocol, u32(r6, context.port))
  a.setMap(r1, maps.peers).load(r2, u64(r6, context.socket)).set(r3, 0).set(r4, 0)
  a.call('socketStorage').when(r0, '==', 0, 'leave').set(r8, r0)
  for (let at = 0; at < 20; at += 4) {
    a.load(r1, u32(r8, peer.endpoint + at))
      .load(r2, part(stack.key, at, u32))
      .when(r1, '!=', r2, 'leave')
  }
  rewrite(a, family, r8, { address: peer.service, port: peer.service + peer.port })
  return a.label('leave').exit(1).program()
}

/** ::ffff:0:0/96 in network order, as a word of this machine */
const mappedWord = 0xffff_0000 | 0

/** Copies the context's address to the stack, as 16 bytes. */
function contextAddress(a: Assembler, family: Family, to: Memory): void {
  for (let at = 0; at < 16; at += 4) {
    if (family === 'IPv6') a.copy(4, part(to, at, u32), u32(r6, context.ipv6 + at))
    else if (at === 12) a.copy(4, part(to, at, u32), u32(r6, context.ipv4))
    else a.store(part(to, at, u32), at === 8 ? mappedWord : 0)
  }
}

/** Replaces the context's address and port by those at a base. */
function rewrite(
  a: Assembler,
  family: Family,
  base: Register,
  at: { readonly address: number; readonly port: number },
  pause: (a: Assembler) => void = () => {},
): void {
  if (family === 'IPv4') a.copy(4, u32(r6, context.ipv4), u32(base, at.address + 12))
  else for (let word = 0; word < 16; word += 4) a.copy(4, u32(r6, context.ipv6 + word), u32(base, at.address + word))
  pause(a)
  a.load(r1, u16(base, at.port)).store(u32(r6, context.port), r1)
}
