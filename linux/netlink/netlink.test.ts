import { readdirSync, readlinkSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { type Libc, loadLibc } from '../libc.js'
import { MessageBuffer } from './buffer.js'
import {
  EINVAL,
  ENOENT,
  EPERM,
  EPROTONOSUPPORT,
  errnoText,
  NETLINK_GENERIC,
  NETLINK_NETFILTER,
  NETLINK_ROUTE,
  NLM_F_DUMP,
  NLM_F_DUMP_INTR,
  NLMSG_DONE,
  NLMSG_ERROR,
} from './constants.js'
import { dump } from './dump.js'
import { acknowledgementIn, attributesOf, findAttribute, hostOrder, type Message, textOf } from './messages.js'
import { AnswersLost, NetlinkSocket } from './socket.js'

/** A kernel that answers with these datagrams; failing calls set this errno. */
function scriptedKernel(datagrams: Buffer[], fails: Partial<Record<keyof Libc, number>> = {}) {
  const closed: number[] = []
  let errno = 0
  const call =
    (name: keyof Libc, result: number) =>
    (..._: unknown[]) => {
      errno = fails[name] ?? 0
      return fails[name] === undefined ? result : -1
    }
  const libc: Libc = {
    socket: call('socket', 7),
    bind: call('bind', 0),
    getsockname: call('getsockname', 0),
    connect: call('connect', 0),
    setsockopt: call('setsockopt', 0),
    getsockopt: call('getsockopt', 0),
    poll: call('poll', 0),
    send: (_fd, _bytes, length) => length,
    sendAsync: async (_fd, _bytes, length) => length,
    recv: (_fd, bytes) => {
      const next = datagrams.shift()
      if (next) return Buffer.from(bytes.buffer, bytes.byteOffset).write(next.toString('latin1'), 'latin1')
      errno = fails.recv ?? 11
      return -1
    },
    close: (fd) => closed.push(fd),
    dup3: call('dup3', 0),
    flock: call('flock', 0),
    unshare: call('unshare', 0),
    setns: call('setns', 0),
    madvise: call('madvise', 0),
    errno: () => errno,
  }
  return { libc, closed }
}

const requestOf = (sequence: number): Buffer => {
  const buffer = new MessageBuffer(sequence)
  buffer.beginNetfilter(1, NLM_F_DUMP, 2)
  buffer.end()
  return buffer.bytes
}

/** A message as the kernel sends it; a number is an errno after the header. */
function message(type: number, sequence: number, content: string | number, flags = 0): Buffer {
  const body = Buffer.alloc(4)
  if (typeof content === 'number') hostOrder.writeU32(body, -content >>> 0, 0)
  else body.write(content, 'latin1')
  const buffer = new MessageBuffer(sequence)
  buffer.begin(type, flags)
  buffer.end()
  const bytes = Buffer.concat([buffer.bytes, body])
  hostOrder.writeU32(bytes, bytes.length, 0)
  return bytes
}

test('a message that is repeated equals one that is written again', () => {
  const write = (again: (buffer: MessageBuffer, write: () => void) => void): Buffer => {
    // So small that it grows while the message is repeated.
    const buffer = new MessageBuffer(7, 40)
    const rule = () => {
      buffer.beginNetfilter(1, 2, 3)
      buffer.text(4, 'draw')
      buffer.end()
    }
    rule()
    again(buffer, rule)
    buffer.addFlags(NLM_F_DUMP)
    return buffer.bytes
  }
  expect(write((buffer) => buffer.repeat())).toEqual(write((_, rule) => rule()))
})

describe('a dump', () => {
  async function dumped(datagrams: Buffer[], onFailure?: (errno: number) => void) {
    const taken: string[] = []
    const socket = new NetlinkSocket(scriptedKernel(datagrams).libc, NETLINK_NETFILTER)
    const isWhole = await dump(socket, requestOf(5), (one: Message) => {
      const errno = acknowledgementIn(one)?.errno ?? 0
      if (errno !== 0) onFailure?.(errno)
      taken.push(one.bytes.toString('latin1', 16))
    })
    return { taken, isWhole }
  }
  const item = (text: string, flags = 0) => message(100, 5, text, flags)
  const done = (errno = 0) => message(NLMSG_DONE, 5, errno)

  test('ends with NLMSG_DONE, over several datagrams', async () => {
    const datagrams = [Buffer.concat([item('aaaa'), item('bbbb')]), Buffer.concat([item('cccc'), done()])]
    expect(await dumped(datagrams)).toEqual({ taken: ['aaaa', 'bbbb', 'cccc'], isWhole: true })
  })

  test('is not whole if what is listed changed meanwhile, or if nothing more comes', async () => {
    expect((await dumped([item('aaaa', NLM_F_DUMP_INTR), done()])).isWhole).toBe(false)
    expect((await dumped([item('aaaa')])).isWhole).toBe(false)
  })

  test('that the kernel breaks off with an errno in NLMSG_DONE has failed', async () => {
    await expect(dumped([item('aaaa'), done(ENOENT)])).rejects.toThrow('The kernel did not finish a list: ENOENT.')
  })

  test('that fails is told to the reader first, who can name the thing', async () => {
    const complain = (errno: number) => {
      throw new Error(`The table is gone: ${errnoText(errno)}`)
    }
    await expect(dumped([item('aaaa'), done(ENOENT)], complain)).rejects.toThrow('The table is gone: ENOENT')
    await expect(dumped([message(NLMSG_ERROR, 5, EINVAL)], complain)).rejects.toThrow('The table is gone: EINVAL')
    await expect(dumped([message(NLMSG_ERROR, 5, EINVAL)])).rejects.toThrow('EINVAL')
  })

  test('is not mixed with what is left of an earlier one', async () => {
    const datagrams = [message(100, 4, 'old!'), message(NLMSG_DONE, 4, 0), item('aaaa'), done()]
    expect(await dumped(datagrams)).toEqual({ taken: ['aaaa'], isWhole: true })
  })
})

describe('a socket', () => {
  test.each(['bind', 'getsockname'] as const)('whose %s fails is closed', (name) => {
    const { libc, closed } = scriptedKernel([], { [name]: EPERM })
    expect(() => new NetlinkSocket(libc, NETLINK_NETFILTER)).toThrow(/netfilter: EPERM\./)
    expect(closed).toEqual([7])
  })

  test('that cannot join a group is closed', () => {
    const { libc, closed } = scriptedKernel([], { setsockopt: EINVAL })
    const socket = new NetlinkSocket(libc, NETLINK_ROUTE)
    expect(() => socket.join(1, 4096)).toThrow('Cannot join group 1 of rtnetlink: EINVAL.')
    socket.close()
    expect(closed).toEqual([7])
  })

  test('to a protocol that the kernel lacks says so', () => {
    const { libc } = scriptedKernel([], { socket: EPROTONOSUPPORT })
    expect(() => new NetlinkSocket(libc, NETLINK_GENERIC)).toThrow(
      'Cannot open a socket to generic netlink: EPROTONOSUPPORT. This kernel does not have it;',
    )
  })

  test('that lost messages says so', () => {
    const { libc } = scriptedKernel([], { recv: 105 })
    expect(() => [...new NetlinkSocket(libc, NETLINK_NETFILTER).receive()]).toThrow(AnswersLost)
  })

  test('is closed only after a send on another thread has ended', async () => {
    const { libc, closed } = scriptedKernel([])
    let finish = (_: number) => {}
    libc.sendAsync = () => new Promise((resolve) => (finish = resolve))
    const socket = new NetlinkSocket(libc, NETLINK_NETFILTER)
    const sending = socket.send(Buffer.alloc(16), true)
    socket.close()
    expect(closed).toEqual([])
    finish(16)
    await sending
    expect(closed).toEqual([7])
  })
})

describe.skipIf(process.platform !== 'linux')('the kernel', () => {
  const sockets = () =>
    readdirSync('/proc/self/fd').filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).startsWith('socket:')
      } catch {
        return false
      }
    }).length

  test('lists interfaces by rtnetlink, whose header is another one', async () => {
    const before = sockets()
    const socket = new NetlinkSocket(await loadLibc(), NETLINK_ROUTE)
    expect(sockets()).toBe(before + 1)
    const [RTM_GETLINK, RTM_NEWLINK, IFLA_IFNAME, interfaceHeader] = [18, 16, 3, Buffer.alloc(16)]
    const request = new MessageBuffer(1)
    request.begin(RTM_GETLINK, NLM_F_DUMP)
    request.header(interfaceHeader)
    request.end()
    const names: string[] = []
    const isWhole = await dump(socket, request.bytes, (one) => {
      expect(one.type).toBe(RTM_NEWLINK)
      const name = findAttribute(attributesOf(one, 16 + interfaceHeader.length), IFLA_IFNAME)
      names.push(name ? textOf(name) : '?')
    })
    expect(isWhole).toBe(true)
    expect(names).toContain('lo')
    socket.close()
    expect(sockets()).toBe(before)
  })
})
