import { describe, expect, it } from 'vitest'
import { percentEncode, Status, statusHeaders } from './status.js'

describe('status', () => {
  it('encodes what may not stand in a header, byte by byte', () => {
    expect(percentEncode('plain ~ text, "quoted"!')).toBe('plain ~ text, "quoted"!')
    expect(percentEncode('100%')).toBe('100%25')
    expect(percentEncode('a\nb\tc\x7f')).toBe('a%0Ab%09c%7F')
    expect(percentEncode('für 日')).toBe('f%C3%BCr %E6%97%A5')
  })

  it('leaves the message out when there is none', () => {
    expect(statusHeaders(Status.OK)).toEqual({ 'grpc-status': '0' })
    expect(statusHeaders(Status.NOT_FOUND, 'no é')).toEqual({ 'grpc-status': '5', 'grpc-message': 'no %C3%A9' })
  })
})
