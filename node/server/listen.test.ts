import type { AddressInfo } from 'node:net'
import { connect, createServer } from 'node:net'
import type { KpngError } from '@kpng/api'
import { afterEach, describe, expect, test } from 'vitest'
import { recordingLog, until } from '../../core/testing/until.js'
import { hostAndPort, type ListenOptions, listen } from './listen.js'
import { sendText } from './respond.js'

const stops: AbortController[] = []
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort()
})

async function occupied() {
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  const { port } = other.address() as AddressInfo
  return { port, free: () => new Promise((resolve) => other.close(resolve)) }
}

function start(address: string, options: Partial<ListenOptions> = {}) {
  const stop = new AbortController()
  stops.push(stop)
  const { lines, log } = recordingLog()
  const failures: KpngError[] = []
  const listening = listen({
    name: 'metrics',
    address,
    handler: (_, response) => sendText(response, 200, 'here'),
    log,
    signal: stop.signal,
    retryIntervalMs: 20,
    onFailed: (error) => failures.push(error),
    ...options,
  })
  return { listening, lines, failures, stop }
}

const get = async (port: number | undefined) => (await fetch(`http://127.0.0.1:${port}/`)).text()

describe('a port in use', () => {
  test('is said once, tried again, and taken when it is free', async () => {
    const { port, free } = await occupied()
    const { listening, lines, failures } = start(`127.0.0.1:${port}`)
    const server = await listening
    expect(server.port).toBeUndefined()
    await until('it was tried again', () => lines.some((line) => line.includes('Still cannot')))
    await free()
    await until('it is open', () => server.port === port)
    expect(await get(port)).toBe('here')
    expect(failures).toHaveLength(1)
    expect(failures[0]?.message).toContain(`The metrics server cannot listen on 127.0.0.1:${port}: the port is in use.`)
    expect(lines.filter((line) => line.startsWith('E'))).toHaveLength(1)
  })

  test('is fatal with hardFail', async () => {
    const { port, free } = await occupied()
    const { listening, failures } = start(`127.0.0.1:${port}`, { hardFail: true })
    await expect(listening).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('in use') })
    expect(failures).toHaveLength(1)
    await free()
    await new Promise((resolve) => setTimeout(resolve, 60))
    await expect(get(port)).rejects.toThrow()
  })
})

test('clients that say nothing do not keep others out', async () => {
  const { listening } = start('127.0.0.1:0')
  const { port = 0 } = await listening
  const clients = Array.from({ length: 300 }, () => connect({ host: '127.0.0.1', port }))
  let open = 0
  for (const client of clients) {
    client.on('connect', () => open++)
    client.on('close', () => open--)
    client.on('error', () => {})
  }
  await until('most are closed', () => open > 0 && open <= 64)
  expect(await get(port)).toBe('here')
  for (const client of clients) client.destroy()
})

test('the signal ends it, and what was tried', async () => {
  const open = start('127.0.0.1:0')
  const { port } = await open.listening
  expect(await get(port)).toBe('here')
  open.stop.abort()
  await expect(get(port)).rejects.toThrow()

  const { port: taken, free } = await occupied()
  const waiting = start(`127.0.0.1:${taken}`)
  await waiting.listening
  waiting.stop.abort()
  await free()
  await new Promise((resolve) => setTimeout(resolve, 60))
  await expect(get(taken)).rejects.toThrow()
})

test.each([
  ['0.0.0.0:10256', '0.0.0.0', 10256],
  ['[::1]:1', '::1', 1],
])('%s', (address, host, port) => {
  expect(hostAndPort(address)).toEqual({ host, port })
})
