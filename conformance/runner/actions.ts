import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '@kpng/api'
import type { Action, Case } from '../cases/case.js'
import type { ApiServerSwitch } from '../feed/api-relay.js'
import type { Lab } from '../lab/lab.js'
import type { Proxiers } from './proxiers.js'
import type { PlacedAction } from './rounds.js'

/** What actions act on. */
export interface Scene {
  readonly lab: Lab
  readonly proxiers: Proxiers
  /** Undefined if objects come from manifests. */
  readonly apiServer: ApiServerSwitch | undefined
}

/** A proxy that lost its API server has this long to notice. */
const noticeMs = 300

/** Does what the cases of a round ask for. Returns why not, for each case whose action failed. */
export async function perform(actions: readonly PlacedAction[], scene: Scene): Promise<Map<Case, string>> {
  const failed = new Map<Case, string>()
  for (const { case: one, action } of actions) {
    if (failed.has(one)) continue
    try {
      await act(action, scene)
    } catch (error) {
      failed.set(one, `this machine cannot do what the case asks for: ${messageOf(error)}`)
    }
  }
  return failed
}

async function act(action: Action, { lab, proxiers, apiServer }: Scene): Promise<void> {
  switch (action.kind) {
    case 'run':
      await lab.run(action.host, 'sh', ['-e'], { input: action.script })
      return
    case 'end-proxy':
      return proxiers.endMain(action.signal)
    case 'api-server-away':
      apiServer?.away()
      await sleep(noticeMs)
  }
}
