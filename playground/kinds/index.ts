import type { ServiceNetwork } from '../services/network.js'
import { configMapKind, secretKind, serviceAccountKind } from './config.js'
import { deploymentKind } from './deployment.js'
import { endpointSliceKind, endpointsKind } from './endpoints.js'
import { eventKind, newEventKind } from './event.js'
import { apiVersionOf, type Kind } from './kind.js'
import { namespaceKind, serviceCidrKind } from './namespace.js'
import { nodeKind } from './node.js'
import { podKind } from './pod.js'
import { serviceKind } from './service.js'

/** Every kind the API server has; what kubectl finds is made of this list. */
export class Kinds {
  readonly all: readonly Kind[]

  constructor(network: ServiceNetwork) {
    this.all = [
      configMapKind,
      endpointsKind,
      eventKind,
      namespaceKind,
      nodeKind,
      podKind,
      secretKind,
      serviceAccountKind,
      serviceKind(network),
      deploymentKind,
      endpointSliceKind,
      newEventKind,
      serviceCidrKind,
    ]
  }

  byResource(group: string, version: string, plural: string): Kind | undefined {
    return this.all.find((kind) => kind.group === group && kind.version === version && kind.plural === plural)
  }

  byKind(apiVersion: string, name: string): Kind | undefined {
    return this.all.find((kind) => kind.kind === name && apiVersionOf(kind) === apiVersion)
  }

  /** `v1`, `apps/v1` …: each once, core first. */
  get groupVersions(): { group: string; version: string; kinds: Kind[] }[] {
    const found = new Map<string, { group: string; version: string; kinds: Kind[] }>()
    for (const kind of this.all) {
      const key = apiVersionOf(kind)
      const entry = found.get(key) ?? { group: kind.group, version: kind.version, kinds: [] }
      entry.kinds.push(kind)
      found.set(key, entry)
    }
    return [...found.values()]
  }
}
