import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { schemaFaults, schemaOf } from './testing/kubernetes-schema.js'
import { hasKubectl, render, renderWith } from './testing/kustomize.js'
import { refusal } from './testing/parse.js'
import { isWorkload, referenceFaults, type Workload } from './testing/references.js'
import { valueFaults } from './testing/values.js'

const here = new URL('.', import.meta.url).pathname
const folder = join(here, 'kube-proxy-cleanup')

describe.skipIf(!hasKubectl)('the DaemonSet that cleans up after kube-proxy', () => {
  const all = hasKubectl ? render(folder) : []
  const pod = (all.find(isWorkload) as Workload).spec.template.spec

  test('is what Kubernetes allows, and refers only to what is there', () => {
    expect(schemaFaults(all.filter(({ apiVersion }) => schemaOf(apiVersion))).flat()).toEqual([])
    expect(all.flatMap(valueFaults)).toEqual([])
    expect(referenceFaults(all, [])).toEqual([])
  })

  test('waits for kpng first, then removes, and its command is one that kpng takes', async () => {
    expect(pod.initContainers?.map(({ name }) => name)).toEqual(['wait-for-kpng', 'cleanup'])
    expect(await refusal(pod.initContainers?.[1]?.args ?? [])).toBeUndefined()
  })

  test('may only what it needs: no rights in the cluster, and two capabilities in one container', () => {
    expect(all.map(({ kind }) => kind).sort()).toEqual(['DaemonSet', 'ServiceAccount'])
    const containers = [...(pod.initContainers ?? []), ...pod.containers]
    for (const { name, securityContext } of containers) {
      expect(securityContext, name).toMatchObject({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true })
      const add = name === 'cleanup' ? { add: ['NET_ADMIN', 'NET_RAW'] } : {}
      expect(securityContext?.capabilities, name).toEqual({ drop: ['ALL'], ...add })
    }
  })

  test('runs on labelled nodes only, with the component for that', () => {
    const labelled = renderWith(folder, [join(here, 'components/labelled-nodes')]).find(isWorkload) as Workload
    expect(labelled.spec.template.spec.nodeSelector).toEqual({ 'kubernetes.io/os': 'linux', 'service-proxy': 'kpng' })
  })

  test.each([
    ['kpng, ready', '/readyz', 200, 0],
    ['kpng, not ready', '/readyz', 503, 1],
    ['kube-proxy, which has no /readyz', '/healthz', 200, 1],
  ])('%s: %s answers %i, so the wait ends with %i', async (_, path, status, code) => {
    const server = createServer((request, response) => response.writeHead(request.url === path ? status : 404).end())
    onTestFinished(() => void server.close())
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    const url = pod.initContainers?.[0]?.env?.[0]?.value?.replace('10256', String(port))
    const script = spawn(process.execPath, [join(here, 'image/healthcheck.js')], { env: { KPNG_HEALTHZ: url } })
    expect(await once(script, 'exit')).toEqual([code, null])
  })
})
