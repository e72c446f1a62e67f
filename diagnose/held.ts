import type { HeldAnswer } from '@kpng/api'
import type { HeldFrontend } from '@kpng/client'
import { type Audience, endpointKey, type Frontend } from '@kpng/dataplane'

/**
 * Compares what a data plane holds for a frontend with what it should hold.
 * @param held undefined: the data plane does not have the frontend at all
 * @param holder whose data plane it is; default: kpng's
 */
export function heldAnswer(frontend: Frontend, held: HeldFrontend | undefined, holder?: string): HeldAnswer {
  const by = holder === undefined ? {} : { holder }
  const who = holderText(holder)
  if (!held) return { ...by, isRight: false, differences: [`${who} does not have it at all.`] }
  const { inside, outside } = frontend
  const differences = [
    ...differencesIn(who, '', inside, held.inside),
    // One list serves everybody unless the policy is Local.
    ...(inside === outside ? [] : differencesIn(who, ' for clients from outside', outside, held.outside)),
    ...(outside.endpoints.length > 0 || outside.otherwise === held.otherwise
      ? []
      : [`Clients from outside should be ${ended[outside.otherwise]}, and are ${ended[held.otherwise]}.`]),
  ]
  const { sessionAffinity, connections } = held
  return {
    ...by,
    isRight: differences.length === 0,
    differences,
    ...(sessionAffinity === undefined ? {} : { sessionAffinity }),
    ...(connections === undefined ? {} : { connections }),
  }
}

/** The subject of sentences about what a data plane holds. */
export const holderText = (holder = 'The data plane'): string => holder

const ended = { refuse: 'refused', drop: 'dropped' } as const

function differencesIn(holder: string, who: string, { endpoints }: Audience, held: readonly string[]): string[] {
  const wanted = new Set(endpoints.map(endpointKey))
  const missing = [...wanted].filter((endpoint) => !held.includes(endpoint))
  const extra = [...new Set(held)].filter((endpoint) => !wanted.has(endpoint))
  return [
    ...(missing.length > 0 ? [`${holder} lacks ${missing.join(', ')}${who}.`] : []),
    ...(extra.length > 0 ? [`${holder} still has ${extra.join(', ')}${who}.`] : []),
  ]
}
