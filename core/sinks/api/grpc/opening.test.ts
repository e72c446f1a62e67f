import { describe, expect, it } from 'vitest'
import { parseTimeout, readOpening } from './opening.js'
import { Status } from './status.js'

const good = { ':method': 'POST', ':path': '/a.B/C', 'content-type': 'application/grpc', te: 'trailers' }
const serves = (path: string) => path === '/a.B/C'

describe('readOpening', () => {
  it('takes gRPC content types and no other', () => {
    for (const type of [
      'application/grpc',
      'application/grpc+proto',
      'application/grpc;charset=utf-8',
      'Application/GRPC',
    ])
      expect(readOpening({ ...good, 'content-type': type }, serves), type).toMatchObject({
        kind: 'call',
        path: '/a.B/C',
      })
    for (const type of [
      'application/json',
      'application/grpc-web',
      'application/grpc+json',
      'application/grpcx',
      undefined,
    ])
      expect(readOpening({ ...good, 'content-type': type }, serves), type).toMatchObject({ kind: 'http', status: 415 })
  })

  it('takes POST only', () => {
    expect(readOpening({ ...good, ':method': 'GET' }, serves)).toMatchObject({ kind: 'http', status: 405 })
  })

  it('names the method that it does not have', () => {
    const opening = readOpening({ ...good, ':path': '/a.B/D' }, serves)
    expect(opening).toMatchObject({ kind: 'refused', error: { code: Status.UNIMPLEMENTED } })
    expect(opening).toMatchObject({ error: { message: 'This server has no method /a.B/D' } })
  })

  it('reads no compression but identity', () => {
    expect(readOpening({ ...good, 'grpc-encoding': 'identity' }, serves).kind).toBe('call')
    expect(readOpening({ ...good, 'grpc-encoding': 'gzip' }, serves)).toMatchObject({
      error: { code: Status.UNIMPLEMENTED },
    })
  })

  it('reads the timeout and refuses one that makes no sense', () => {
    expect(readOpening({ ...good, 'grpc-timeout': '250m' }, serves)).toMatchObject({ timeoutMs: 250 })
    expect(readOpening(good, serves)).toMatchObject({ timeoutMs: undefined })
    expect(readOpening({ ...good, 'grpc-timeout': 'soon' }, serves)).toMatchObject({
      error: { code: Status.INVALID_ARGUMENT },
    })
  })
})

describe('parseTimeout', () => {
  it.each([
    ['2H', 7_200_000],
    ['3M', 180_000],
    ['4S', 4000],
    ['5m', 5],
    ['1500u', 2],
    ['1n', 1],
    ['0m', 0],
    ['99999999H', 359_999_996_400_000],
    ['', undefined],
    ['5', undefined],
    ['-5m', undefined],
    ['123456789m', undefined],
    ['5s', undefined],
  ])('%s', (text, expected) => {
    expect(parseTimeout(text)).toBe(expected)
  })
})
