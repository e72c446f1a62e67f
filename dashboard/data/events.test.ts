import { expect, test } from 'vitest'
import { AgentError, EventParser, errorOf, type ServerEvent } from './events.js'

const text = 'id: a.1\nevent: snapshot\ndata: {"a":1}\n\n: comment\n\nevent: pulse\ndata:{}\n\ndata: one\ndata: two\n\n'
const expected: ServerEvent[] = [
  { id: 'a.1', name: 'snapshot', data: '{"a":1}' },
  { id: '', name: 'pulse', data: '{}' },
  { id: '', name: 'message', data: 'one\ntwo' },
]

test('events are the same wherever the text is cut', () => {
  for (let size = 1; size <= text.length; size++) {
    const events: ServerEvent[] = []
    const parser = new EventParser((event) => events.push(event))
    for (let at = 0; at < text.length; at += size) parser.push(text.slice(at, at + size))
    expect(events).toEqual(expected)
  }
})

test('an event that is not complete is not read', () => {
  const events: ServerEvent[] = []
  new EventParser((event) => events.push(event)).push('event: pulse\ndata: {}\n')
  expect(events).toEqual([])
})

test("a refusal has the agent's own words, or the status", async () => {
  const own = await errorOf(new Response('{"error":"This dashboard needs a token."}', { status: 401 }))
  expect(own).toBeInstanceOf(AgentError)
  expect([own.status, own.message]).toEqual([401, 'This dashboard needs a token.'])
  expect((await errorOf(new Response('<html>', { status: 502 }))).message).toBe('The agent answers with status 502.')
})
