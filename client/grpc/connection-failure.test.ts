import { KpngError } from '@kpng/api'
import { expect, test } from 'vitest'
import { explainFailure } from './connection-failure.js'

// From what grpc-js, Node and OpenSSL say to what a person can do.

const files = { keyFile: '/k/tls.key', certFile: '/k/tls.crt', caFile: '/k/ca.crt' }
const connecting = (lastError: string) =>
  Object.assign(new Error(), { details: `No connection established. Last error: ${lastError}. Resolution note: ` })
const openssl = (reason: string) =>
  `80BC69EAFA7F0000:error:0A00010B:SSL routines:ssl3_read_bytes:${reason}:../deps/openssl/openssl/ssl/record/x.c:350:\n`

test.each<[string, unknown, typeof files | { caFile: string } | undefined, string]>([
  [
    'plain text to a TLS port',
    connecting('Failed to connect (2026-11-15T09:39:15.600Z)'),
    undefined,
    'The server closed the connection without a word. It may want TLS. Give a CA certificate, a certificate for clients and its key.',
  ],
  [
    'a certificate that a server of Node refuses',
    connecting('Failed to connect (2026-11-15T09:39:15.600Z)'),
    files,
    'The server closed the connection without a word. It may have refused the certificate in /k/tls.crt. Give a certificate for clients, with its key, of an authority that the server trusts.',
  ],
  [
    'a certificate that a server of Go refuses',
    connecting(openssl('tlsv1 alert unknown ca')),
    files,
    "The server refused this client's certificate (unknown ca). Give a certificate for clients, with its key, of an authority that the server trusts.",
  ],
  [
    'no certificate where one is demanded',
    connecting(`${openssl('tlsv13 alert certificate required')} (2026-11-15T09:39:19.514Z)`),
    { caFile: '/k/ca.crt' },
    'The server wants a certificate of this client. Give a certificate for clients, with its key, of an authority that the server trusts.',
  ],
  [
    'TLS to a plain port',
    connecting(`Error: ${openssl('wrong version number')}`),
    files,
    'The server does not speak TLS at this address. Is it the right port? Else turn TLS on at the server, or off here.',
  ],
  [
    'a certificate of another authority',
    connecting('Error: self-signed certificate in certificate chain'),
    files,
    "The server's certificate is not of the authority in /k/ca.crt. Give the certificate of the authority that signed it.",
  ],
  [
    'a certificate of an authority that was not given',
    connecting('Error: unable to verify the first certificate'),
    { ...files, caFile: undefined as unknown as string },
    "The server's certificate is of an authority that this machine does not know. Give that authority's certificate.",
  ],
  [
    'a certificate for another address',
    connecting(
      "Error [ERR_TLS_CERT_ALTNAME_INVALID]: Hostname/IP does not match certificate's altnames: IP: 127.0.0.2 is not in the cert's list: 127.0.0.1",
    ),
    files,
    "The server's certificate does not name this address (IP: 127.0.0.2 is not in the cert's list: 127.0.0.1). Is it the right address? Then the certificate needs it as a subject alternative name.",
  ],
  [
    'an old certificate',
    connecting('Error: certificate has expired'),
    files,
    "The server's certificate has expired. Renew it, or set this machine's clock right.",
  ],
  [
    'two files that do not belong together',
    new Error('error:05800074:x509 certificate routines::key values mismatch'),
    files,
    'The key in /k/tls.key does not belong to the certificate in /k/tls.crt. Give both of one pair.',
  ],
  [
    'a file that is no PEM',
    new Error('error:0480006C:PEM routines::no start line'),
    files,
    'One of the TLS files holds no usable PEM. Look for the line "-----BEGIN …" in the key, the certificate and the CA certificate.',
  ],
  [
    'another trouble of TLS',
    connecting(openssl('tlsv1 alert protocol version')),
    files,
    "TLS failed (tlsv1 alert protocol version). Does the server's side log more?",
  ],
  [
    'nobody there',
    connecting('Error: connect ECONNREFUSED 127.0.0.1:1'),
    undefined,
    'Nothing listens at this address (ECONNREFUSED). Is the server running, and the address right?',
  ],
  [
    'no such name',
    { details: 'Name resolution failed for target dns:nowhere.invalid:12' },
    undefined,
    'The name has no address here. Is it right? On a node that boots without DNS, give an IP address.',
  ],
  ['something else', connecting('Error: connect EACCES /run/kpng.sock'), undefined, 'connect EACCES /run/kpng.sock'],
  ['words of the server', { details: 'read ENOENT: no such namespace' }, files, 'read ENOENT: no such namespace'],
  ['a connection that broke', { details: 'read ECONNRESET' }, files, 'read ECONNRESET'],
  [
    'a sentence of ours',
    new KpngError('unavailable', 'The file x cannot be read: ENOENT.'),
    files,
    'The file x cannot be read: ENOENT.',
  ],
  ['not a word', { details: '', code: 13 }, undefined, 'The call ended with code 13.'],
])('%s', (_, error, tls, sentence) => expect(explainFailure(error, tls)).toBe(sentence))
