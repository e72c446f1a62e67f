import { families } from '@kpng/api'
import { frontendId } from '@kpng/dataplane'
import type { Capture, OpenPortal, Steering } from '../capture/capture.js'
import { fateOf, servicePortName } from '../portal.js'

const textOf = ({ portal, place }: OpenPortal): string => {
  const sources = portal.allowedSources?.map(({ text }) => text) ?? ''
  return `${servicePortName(portal)} ${frontendId(portal)} → ${place.port} ${fateOf(portal.inside)}/${fateOf(portal.outside)} ${sources}`
}

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
    families,
    setup: nothing,
    hosts: ({ family }) => [family === 'IPv4' ? '127.0.0.1' : '::1'],
    allocate: async () => 0,
    release: nothing,
    steer: async (steering) => {
      if (failure) throw failure
      const { extent, open, added, removed } = steering
      steerings.push(steering)
      if (extent === 'full') steps.clear()
      for (const portal of extent === 'full' ? [] : removed) steps.delete(textOf(portal))
      for (const portal of extent === 'full' ? open : added) steps.add(textOf(portal))
      whole = new Set(open.map(textOf))
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
