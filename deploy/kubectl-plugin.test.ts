import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Pod, podsFor, podsIn, wordsFor } from '../cli/kubectl-plugin.js'
import { hasKubectl, render } from './testing/kustomize.js'

// `kubectl kpng` finds the pods of our own manifests, and asks them where their agent API is.

const here = new URL('.', import.meta.url).pathname

interface Workload {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> }
      readonly spec: {
        readonly containers: readonly {
          readonly name: string
          readonly args?: readonly string[]
          readonly env?: readonly { readonly name: string }[]
          readonly securityContext?: { readonly runAsUser?: number }
          readonly volumeMounts?: readonly { readonly mountPath: string }[]
        }[]
      }
    }
  }
}

const workloadsOf = (overlay: string): Workload[] =>
  (render(join(here, 'overlays', overlay)) as unknown as Workload[]).filter(({ kind }) =>
    ['DaemonSet', 'Deployment'].includes(kind),
  )

/** The pods that run of workloads, one each, as `kubectl get pods -o json` lists them. */
const podsOf = (workloads: readonly Workload[]): Pod[] =>
  podsIn({
    items: workloads.map(({ metadata, spec }) => ({
      metadata: { name: `${metadata.name}-x7k2p`, namespace: metadata.namespace ?? 'default' },
      spec: { ...spec.template.spec, nodeName: 'worker-1' },
      status: { phase: 'Running' },
    })),
  })

describe.skipIf(!hasKubectl)('kubectl kpng', () => {
  test.each([
    ['one-process', 'kpng', ['kpng', 'status']],
    ['two-containers', 'kpng-backend', ['kpng', 'status']],
    ['central', 'kpng', ['kpng', 'status']],
    ['specialised', 'kpng', ['kpng', 'status', '--service-proxy-name=kpng-example']],
    ['windows', 'kpng-backend', ['$env:CONTAINER_SANDBOX_MOUNT_POINT/kpng/kpng.exe', 'status']],
  ])('%s', (overlay, container, words) => {
    const workloads = workloadsOf(overlay)
    for (const { spec } of workloads) expect(spec.template.metadata.labels['app.kubernetes.io/name']).toBe('kpng')
    // A core serves other nodes, and is no pod of the node that it runs on.
    const pods = podsFor(podsOf(workloads), ['status'])
    expect(pods.map((pod) => [pod.container, wordsFor(pod, ['status'])])).toEqual([[container, words]])
    if (overlay === 'windows') return
    const serving = workloads.flatMap(({ kind, spec }) => (kind === 'DaemonSet' ? spec.template.spec.containers : []))
    const asked = serving.find(({ name }) => name === container)
    // Both the agent and the question then take the same default: the socket in /run/kpng.
    expect(asked?.args?.filter((word) => word.startsWith('--agent-socket'))).toEqual([])
    expect(asked?.env?.map(({ name }) => name)).not.toContain('RUNTIME_DIRECTORY')
    expect(asked?.securityContext?.runAsUser).toBe(0)
    expect(asked?.volumeMounts?.map(({ mountPath }) => mountPath)).toContain('/run/kpng')
  })

  test('beside a specialised proxy, the default one is asked unless the question names the other', () => {
    const pods = podsOf([...workloadsOf('specialised'), ...workloadsOf('one-process')])
    const asked = (...question: string[]) => podsFor(pods, question).map(({ name }) => name)
    expect(asked('status')).toEqual(['kpng-x7k2p'])
    expect(asked('status', '--service-proxy-name', 'kpng-example')).toEqual(['kpng-example-x7k2p'])
    expect(asked('status', '--service-proxy-name=other')).toEqual([])
  })
})
