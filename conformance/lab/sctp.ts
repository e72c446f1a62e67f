import { readFileSync } from 'node:fs'

/** Node has no SCTP sockets, and most machines no SCTP at all: which of the two it is. */
export function whyNoSctp(): string {
  const known = readFileSync('/proc/net/protocols', 'utf8').includes('\nSCTP ')
  return known ? 'the agents have no SCTP sockets (Node has none)' : 'this kernel has no SCTP'
}
