import { EventEmitter } from 'node:events'
import type { ServerHttp2Session } from 'node:http2'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { keepAlive } from './keepalive.js'

/** A session that is only what the keepalive sees of it. */
class PlayedSession extends EventEmitter {
  destroyed = false
  socket: { bytesRead: number } | undefined = { bytesRead: 0 }
  answers: (() => void)[] = []
  ping(answer: (error: Error | null) => void) {
    this.answers.push(() => answer(null))
    return true
  }
}

const start = () => {
  const session = new PlayedSession()
  const dead = vi.fn()
  keepAlive(session as unknown as ServerHttp2Session, { intervalMs: 1000, ackTimeoutMs: 100 }, dead)
  return { session, dead }
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('keepAlive', () => {
  it('pings again an interval after each answer', () => {
    const { session, dead } = start()
    for (let n = 1; n <= 5; n++) {
      vi.advanceTimersByTime(1000)
      expect(session.answers).toHaveLength(n)
      session.answers.at(-1)?.()
    }
    expect(dead).not.toHaveBeenCalled()
  })

  it('gives up when neither an answer nor anything else comes', () => {
    const { dead } = start()
    vi.advanceTimersByTime(1099)
    expect(dead).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(dead).toHaveBeenCalledTimes(1)
  })

  it('lets bytes stand in for the answer, but not for ever', () => {
    const { session, dead } = start()
    vi.advanceTimersByTime(1000)
    for (let n = 0; n < 5; n++) {
      if (session.socket) session.socket.bytesRead += 1
      vi.advanceTimersByTime(100)
    }
    expect(dead).not.toHaveBeenCalled()
    if (session.socket) session.socket.bytesRead += 1
    vi.advanceTimersByTime(100)
    expect(dead).toHaveBeenCalledTimes(1)
  })

  it('leaves a session alone that has ended and not yet said so', () => {
    const { session, dead } = start()
    session.destroyed = true
    session.socket = undefined
    expect(() => vi.advanceTimersByTime(2000)).not.toThrow()
    expect(dead).not.toHaveBeenCalled()
  })

  it('stops with the session', () => {
    const { session } = start()
    session.emit('close')
    expect(vi.getTimerCount()).toBe(0)
  })
})
