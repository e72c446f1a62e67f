import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startPlayground } from '../index.js'
import { call, service, TestWatch } from '../testing/client.js'

let dataDir: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'kpng-data-'))
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

describe('a data folder', () => {
  it('keeps objects, versions, allocations and credentials across restarts', async () => {
    const first = await startPlayground({ dataDir, runPods: false })
    const web = first.objects.apply(service('web', { type: 'NodePort' }))
    first.objects.apply(service('gone'))
    first.objects.delete('Service', 'gone')
    const { revision, token, caPem } = first
    await first.close()

    const second = await startPlayground({ dataDir, runPods: false })
    expect(second.objects.get('Service', 'web')).toEqual(web)
    expect(second.objects.get('Service', 'gone')).toBeUndefined()
    expect(second.revision).toBeGreaterThanOrEqual(revision)
    expect([second.token, second.caPem]).toEqual([token, caPem])
    const other = second.objects.apply(service('other', { type: 'NodePort' }))
    expect(other.spec).not.toMatchObject({ clusterIP: (web.spec as { clusterIP: string }).clusterIP })
    const watch = await TestWatch.open(second, `/api/v1/services?watch=true&resourceVersion=${second.revision}`)
    second.objects.delete('Service', 'other')
    expect(await watch.take(1)).toEqual(['DELETED other'])
    watch.close()
    await second.close()
  })
  it('survives a line that a crash has cut off', async () => {
    const first = await startPlayground({ dataDir, runPods: false })
    first.objects.apply(service('web'))
    await first.close()
    appendFileSync(join(dataDir, 'objects.jsonl'), '{"resource":"services","key":"default/ha')
    const second = await startPlayground({ dataDir, runPods: false })
    expect(second.objects.get('Service', 'web')).toBeDefined()
    await second.close()
    expect(readFileSync(join(dataDir, 'objects.jsonl'), 'utf8')).not.toContain('default/ha"')
  })
  it('says what is wrong with a file that is not ours, or in use', async () => {
    writeFileSync(join(dataDir, 'objects.jsonl'), '{"something":"else"}\n')
    await expect(startPlayground({ dataDir })).rejects.toThrow(/objects.jsonl is not a playground's; move it away/)
    rmSync(join(dataDir, 'objects.jsonl'))
    writeFileSync(join(dataDir, 'lock'), String(process.ppid))
    await expect(startPlayground({ dataDir })).rejects.toThrow(/is in use by the process/)
  })
  it('writes a kubeconfig that only its owner can read', async () => {
    const playground = await startPlayground({ dataDir, runPods: false })
    expect(playground.kubeconfigPath).toBe(join(dataDir, 'kubeconfig'))
    if (process.platform !== 'win32') expect(statSync(playground.kubeconfigPath).mode & 0o777).toBe(0o600)
    expect(readFileSync(playground.kubeconfigPath, 'utf8')).toContain(`server: ${playground.url}`)
    expect((await call(playground, 'GET', '/api/v1/nodes')).code).toBe(200)
    await playground.close()
  })
})
