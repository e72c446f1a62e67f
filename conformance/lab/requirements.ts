import { existsSync, readFileSync } from 'node:fs'
import { outputOf } from '@kpng/linux'
import { ConformanceError, messageOf } from '../error.js'

/** Why the lab cannot be made on this machine, or undefined when it can. */
export async function whyNoLab(): Promise<string | undefined> {
  if (process.platform !== 'linux') return `The lab is made of Linux network namespaces; this is ${process.platform}.`
  if (process.getuid?.() !== 0) return 'The lab needs root to make network namespaces; run it with sudo.'
  if (!existsSync('/proc/sys/net/ipv6')) return 'This machine has IPv6 disabled, and the lab is dual stack; enable it.'
  try {
    await outputOf('ip', ['-V'], { limitMs: 10_000 })
  } catch (error) {
    return `${messageOf(error)} It comes with the package iproute2.`
  }
  return undefined
}

export async function requireLab(): Promise<void> {
  const why = await whyNoLab()
  if (why !== undefined) throw new ConformanceError('unsupported', why)
}

/** Node has no SCTP sockets, and most machines no SCTP at all: which of the two it is. */
export function whyNoSctp(): string {
  const known = readFileSync('/proc/net/protocols', 'utf8').includes('\nSCTP ')
  return known ? 'the agents have no SCTP sockets (Node has none)' : 'this kernel has no SCTP'
}
