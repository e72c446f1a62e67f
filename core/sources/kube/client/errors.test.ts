import { KpngError } from '@kpng/api'
import { expect, it } from 'vitest'
import { anonymous, type ConnectionConfig } from './config.js'
import { networkError } from './errors.js'

const config: ConnectionConfig = {
  described: 'context "x" of /config',
  cluster: {
    server: 'https://host:6443',
    serverField: 'server of cluster "c" in /config',
    tlsServerName: undefined,
    insecureSkipTlsVerify: false,
    certificateAuthority: undefined,
    proxyUrl: undefined,
  },
  user: anonymous,
}

const failed = (code: string, message = code) => Object.assign(new Error(message), { code })

it.each([
  [
    failed('ECONNREFUSED'),
    /^Cannot reach the API server https:\/\/host:6443 \(context "x" of \/config\): the connection was refused/,
  ],
  [new AggregateError([failed('ECONNREFUSED')]), /the connection was refused/],
  [
    new TypeError('fetch failed', { cause: failed('ENOTFOUND') }),
    /DNS does not know its name. Check the server of cluster "c"/,
  ],
  [failed('EAI_AGAIN'), /cannot be looked up now/],
  [failed('EHOSTUNREACH'), /no route to it/],
  [failed('ECONNRESET'), /the connection was reset/],
  [failed('UND_ERR_CONNECT_TIMEOUT'), /not accepted in time/],
  [failed('UND_ERR_HEADERS_TIMEOUT'), /did not answer in time/],
  [failed('CERT_HAS_EXPIRED'), /its certificate has expired/],
  [failed('CERT_NOT_YET_VALID', 'certificate is not yet valid'), /its certificate is not valid yet/],
  [
    failed('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'SSL routines:tlsv13 alert certificate required'),
    /^Cannot talk to .*refused the TLS connection \(certificate required\). Check the client certificate/,
  ],
  [failed('ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE', 'sslv3 alert bad certificate'), /\(bad certificate\)/],
  [failed('EWHATEVER', 'something new'), /something new\./],
  ['no error at all', /no error at all/],
])('says what happened: %s', (error, message) => {
  const explained = networkError(error, config)
  expect(explained).toBeInstanceOf(KpngError)
  expect(explained.message).toMatch(message)
  expect(explained.cause).toBe(error)
})

it('leaves an error alone that is explained already', () => {
  const error = new KpngError('invalid', 'The token is empty.')
  expect(networkError(error, config)).toBe(error)
})
