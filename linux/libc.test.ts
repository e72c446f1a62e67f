import { expect, onTestFinished, test, vi } from 'vitest'

test('importing the package loads nothing and needs nothing', async () => {
  // As on Windows and macOS, or without koffi: any import of koffi would fail.
  vi.doMock('koffi', () => {
    throw new Error('koffi was loaded')
  })
  await import('./index.js')
})

test('where koffi cannot be loaded, one error says so, each time', async () => {
  vi.doMock('koffi', () => {
    throw new Error('Cannot find the native Koffi module')
  })
  const { loadLibc } = await import('./libc.js')
  for (let time = 1; time <= 2; time++) {
    await expect(loadLibc()).rejects.toMatchObject({
      name: 'KpngError',
      code: 'unsupported',
      message: expect.stringMatching(
        /^The koffi library.* cannot be loaded on .*\. Install koffi for this platform, or/,
      ),
    })
  }
  // And is not remembered for good.
  vi.doUnmock('koffi')
  if (process.platform === 'linux') expect((await loadLibc()).close(-1)).toBe(-1)
})

test('on another platform system calls are refused in a sentence', async () => {
  const { value: platform } = Object.getOwnPropertyDescriptor(process, 'platform') as { value: string }
  onTestFinished(() => void Object.defineProperty(process, 'platform', { value: platform }))
  Object.defineProperty(process, 'platform', { value: 'win32' })
  vi.resetModules()
  const { loadLibc } = await import('./libc.js')
  await expect(loadLibc()).rejects.toThrow('This needs system calls of Linux, and this is win32.')
})
