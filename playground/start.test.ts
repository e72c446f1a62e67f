import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { startPlayground } from './index.js'

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

describe('where nothing can be written', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kpng-start-'))
  // A file is no folder, not even for root.
  const nowhere = join(folder, 'file')
  beforeEach(() => {
    writeFileSync(nowhere, '')
    vi.stubEnv('TMPDIR', nowhere)
  })
  afterEach(() => vi.unstubAllEnvs())
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it.each([
    ['kubeconfig', {}],
    ['kubeconfig', { kubeconfigPath: join(nowhere, 'kubeconfig') }],
    ['data', { dataDir: join(nowhere, 'data') }],
  ])('it says that it cannot write its %s, and leaves nothing open', async (what, options) => {
    const port = await freePort()
    await expect(startPlayground({ port, runPods: false, ...options })).rejects.toMatchObject({
      name: 'KpngError',
      message: expect.stringContaining(`The playground cannot write its ${what}: E`),
    })
    vi.unstubAllEnvs()
    await (await startPlayground({ port, runPods: false })).close()
  })
})
