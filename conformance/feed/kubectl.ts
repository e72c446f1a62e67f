import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '@kpng/api'
import { outputOf } from '@kpng/linux'
import type { KubernetesObject } from '../cases/case.js'
import { clusterObjects, namespace } from '../cases/objects.js'
import { inTurns } from '../in-turns.js'
import type { Feed } from './feed.js'

const keyOf = ({ kind, metadata }: KubernetesObject): string => `${kind}/${metadata.namespace ?? ''}/${metadata.name}`

const listOf = (objects: readonly KubernetesObject[]): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects })

const withoutStatus = ({ status: _status, ...object }: KubernetesObject): KubernetesObject => object as KubernetesObject

/** Applies the objects to an API server through kubectl; of each round only what changed. */
export function kubectlFeed(kubeconfig: string, placeholders: Feed['placeholders'], log: (line: string) => void): Feed {
  const fed = new Map<string, KubernetesObject>()
  const kubectl = (args: readonly string[], input = '') =>
    outputOf('kubectl', ['--kubeconfig', kubeconfig, ...args], { input, limitMs: 120_000 })

  const write = async (objects: readonly KubernetesObject[]) => {
    const changed = objects.filter((object) => JSON.stringify(fed.get(keyOf(object))) !== JSON.stringify(object))
    if (changed.length === 0) return
    const apply = ['apply', '--server-side', '--force-conflicts', '--field-manager', namespace, '-f', '-']
    await kubectl(apply, listOf(changed.map(withoutStatus)))
    // The main resource ignores the status of a Service, and of a Node that is applied.
    const patches = changed
      .filter((object) => JSON.stringify(fed.get(keyOf(object))?.status) !== JSON.stringify(object.status))
      .map((object) => () => kubectl(statusPatch(object)))
    await inTurns(patches, 4)
    for (const object of changed) fed.set(keyOf(object), object)
  }

  const remove = async (objects: readonly KubernetesObject[]) => {
    if (objects.length === 0) return
    await kubectl(['delete', '--ignore-not-found', '--wait=false', '-f', '-'], listOf(objects.map(withoutStatus)))
    for (const object of objects) fed.delete(keyOf(object))
  }

  const begin = async () => {
    await write([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }])
    for (const object of clusterObjects) {
      try {
        await write([object])
      } catch (error) {
        if (object.kind !== 'ServiceCIDR') throw error
        log(`The API server takes no ServiceCIDR, so cells of unallocated cluster IPs may differ: ${messageOf(error)}`)
      }
    }
  }

  return {
    placeholders,
    async apply(objects, canary) {
      if (fed.size === 0) await begin()
      const wanted = new Set([...objects, ...canary, ...clusterObjects].map(keyOf))
      await remove([...fed.values()].filter((object) => object.kind !== 'Namespace' && !wanted.has(keyOf(object))))
      await write(objects.filter((object) => !clusterObjects.includes(object)))
      await write(canary)
    },
    async close() {
      await remove([...fed.values()].reverse())
      await finalizeNamespace(kubectl)
    },
  }
}

/** How long a cluster's controllers have to take the empty namespace away. */
const namespaceTimeoutMs = 5000

/** An API server alone has no controller that ends a namespace: there it would be terminating for ever, and the next run fail. */
async function finalizeNamespace(kubectl: (args: readonly string[], input?: string) => Promise<string>): Promise<void> {
  const isThere = () => kubectl(['get', 'namespace', namespace, '--ignore-not-found', '-o', 'name'])
  const deadline = Date.now() + namespaceTimeoutMs
  while (Date.now() < deadline) {
    if ((await isThere()).trim() === '') return
    await sleep(250)
  }
  const ended = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace }, spec: { finalizers: [] } }
  await kubectl(['replace', '--raw', `/api/v1/namespaces/${namespace}/finalize`, '-f', '-'], JSON.stringify(ended))
}

function statusPatch({ kind, metadata, status }: KubernetesObject): string[] {
  const place = metadata.namespace === undefined ? [] : ['--namespace', metadata.namespace]
  const patch = JSON.stringify({ status: status ?? { loadBalancer: null } })
  return [
    'patch',
    kind.toLowerCase(),
    metadata.name,
    ...place,
    '--subresource=status',
    '--type=merge',
    '--patch',
    patch,
  ]
}
