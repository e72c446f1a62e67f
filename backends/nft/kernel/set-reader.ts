import { KpngError } from '@kpng/api'
import { acknowledgementIn, dump, errnoText, MessageBuffer, type NetlinkSocket, NLM_F_DUMP } from '@kpng/linux'
import { shapeOf, splitSetPath } from '../rules/names.js'
import { ElementsReader, type SetAt, writeElementsRequest } from './set-elements.js'

const ENOENT = 2

/** How often a set is read again if the ruleset changed during the dump. */
const dumpAttempts = 5

/** Gives a socket to one conversation at a time. */
export interface Turns {
  inTurn<Result>(work: (socket: NetlinkSocket, sequence: number) => Promise<Result>): Promise<Result>
}

/** What is in a set, which must exist. */
export async function readSet(turns: Turns, at: SetAt): Promise<ElementsReader> {
  for (let attempt = 1; attempt <= dumpAttempts; attempt++) {
    const reader = await readOnce(turns, at)
    if (reader) return reader
  }
  throw new KpngError('unavailable', `The set "${at.path}" changed each time it was read. kpng tries again later.`)
}

/** The data of one element, '' in a set; undefined if it is not there. */
export function lookUpElement(turns: Turns, at: SetAt, key: string): Promise<string | undefined> {
  return turns.inTurn(async (socket, sequence) => {
    const request = new MessageBuffer(sequence)
    writeElementsRequest(request, at, 0, key)
    await socket.send(request.bytes)
    const reader = new ElementsReader(at.path)
    for (const message of socket.receive()) {
      const errno = acknowledgementIn(message)?.errno ?? 0
      if (errno === ENOENT) return undefined
      if (errno !== 0) throw cannotRead(at, errno)
      reader.read(message)
    }
    return reader.finish().get(key)
  })
}

/** Undefined if the set changed meanwhile. */
function readOnce(turns: Turns, at: SetAt): Promise<ElementsReader | undefined> {
  return turns.inTurn(async (socket, sequence) => {
    const request = new MessageBuffer(sequence)
    writeElementsRequest(request, at, NLM_F_DUMP)
    const reader = new ElementsReader(at.path)
    const isWhole = await dump(socket, request.bytes, (message) => {
      const failure = acknowledgementIn(message)
      if (!failure) reader.read(message)
      else if (failure.errno !== 0) throw cannotRead(at, failure.errno)
    })
    // The kernel may write to such a set at any moment, so a consistent list would be luck.
    return isWhole || shapeOf(splitSetPath(at.path).name).dynamic ? reader : undefined
  })
}

const cannotRead = ({ path }: SetAt, errno: number): KpngError =>
  new KpngError('unavailable', `The set "${path}" cannot be read: ${errnoText(errno)}.`)
