import type { Capture, OpenPortal, Steering } from '../capture/capture.js'
import { portalName } from '../portal.js'

const textOf = ({ portal, place, fates }: OpenPortal): string =>
  `${portalName(portal)} → ${place.port} ${fates.inside}/${fates.outside} ${portal.sourceRanges?.cidrs ?? ''}`

/** Remembers what it was told step by step, and what it would have been told at once. */
export function fakeCapture() {
  const steps = new Set<string>()
  let whole = new Set<string>()
  let failure: Error | undefined
  let steerings: Steering[] = []
  const nothing = async () => {}
  const capture: Capture = {
    name: 'nft',
    listensOnPortals: false,
    setup: nothing,
    place: async ({ family }) => ({ ip: family === 'v4' ? '127.0.0.1' : '::1', port: 0 }),
    isRight: () => true,
    release: nothing,
    steer: async (steering) => {
      if (failure) throw failure
      steerings.push(steering)
      if (steering.full) steps.clear()
      for (const portal of steering.full ? [] : steering.removed) steps.delete(textOf(portal))
      for (const portal of steering.full ? steering.open : steering.added) steps.add(textOf(portal))
      whole = new Set(steering.open.map(textOf))
    },
    cleanup: nothing,
  }
  return {
    capture,
    stepByStep: () => [...steps].sort(),
    atOnce: () => [...whole].sort(),
    fail: (error: Error | undefined) => {
      failure = error
    },
    /** The steerings since it was last asked. */
    taken: () => {
      const taken = steerings
      steerings = []
      return taken
    },
  }
}
