import { createServer } from 'node:net'

export const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })

/** The pages of a command on loopback. */
export const pagesAt = (port: number) => async (path: string, init?: RequestInit) => {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, init)
  return { status: response.status, text: await response.text() }
}

/** For `expect.poll`, whose own second is short where other suites run beside. */
export const patience = { timeout: 90_000 }
