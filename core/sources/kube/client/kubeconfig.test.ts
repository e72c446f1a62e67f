import { expect, it } from 'vitest'
import { resolveContext } from './context.js'
import { mergeKubeconfigs, parseKubeconfig } from './kubeconfig.js'

const one = `
apiVersion: v1
kind: Config
current-context: first
clusters: [{name: c, cluster: {server: "https://one:6443/", certificate-authority: pki/ca.crt}}]
users: [{name: u, user: {token: one-token}}]
contexts: [{name: first, context: {cluster: c, user: u}}]
`
const two = `
current-context: second
clusters: [{name: c, cluster: {server: https://two:6443}}, {name: d, cluster: {server: https://d}}]
users: [{name: u, user: {token: two-token}}, {name: v, user: {tokenFile: ../token}}]
contexts: [{name: second, context: {cluster: d, user: v}}]
`
const parse = (text: string, file = '/home/ada/.kube/config') => parseKubeconfig(file, text)
const resolve = (text: string, wanted = {}) => resolveContext(parse(text), wanted)

/** A kubeconfig with one context, some fields of which are given. */
const config = (cluster: object, user: object = {}) =>
  JSON.stringify({
    'current-context': 'x',
    clusters: [{ name: 'c', cluster: { server: 'https://host', ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  })

it('reads a context, with paths from the folder of its file', () => {
  expect(resolve(one)).toMatchObject({
    described: 'context "first" of /home/ada/.kube/config',
    cluster: { server: 'https://one:6443', certificateAuthority: { file: '/home/ada/.kube/pki/ca.crt' } },
    user: { token: 'one-token' },
  })
})

it('merges files: the first that has an entry decides, and so the first current-context', () => {
  const merged = mergeKubeconfigs([parse(one, '/a/one'), parse(two, '/b/c/two')])
  expect(resolveContext(merged)).toMatchObject({
    cluster: { server: 'https://one:6443' },
    user: { token: 'one-token' },
  })
  expect(resolveContext(merged, { context: 'second' })).toMatchObject({
    described: 'context "second" of /b/c/two',
    cluster: { server: 'https://d' },
    user: { tokenFile: { file: '/b/token' } },
  })
  expect(mergeKubeconfigs([parse('{}', '/a'), parse(two, '/b')]).currentContext).toBe('second')
})

it('takes a given server in place of the cluster’s', () => {
  expect(resolve(one, { server: 'https://10.0.0.1:6443/base/' }).cluster).toMatchObject({
    server: 'https://10.0.0.1:6443/base',
    serverField: 'given server URL',
  })
})

it('takes what tools leave empty', () => {
  const text =
    'current-context: x\nusers: null\nclusters: [{name: c, cluster: {server: host:8080, proxy-url: ""}}]\ncontexts: [{name: x, context: {cluster: c, user: ""}}]'
  expect(resolve(text)).toMatchObject({ cluster: { server: 'http://host:8080', proxyUrl: undefined } })
})

it('reads all ways to say who asks', () => {
  const { user } = resolve(
    config(
      {},
      { username: 'a', password: 'b', as: 'x', 'as-uid': '1', 'as-groups': ['g'], token: 't', tokenFile: '/t' },
    ),
  )
  expect(user).toMatchObject({
    basic: { username: 'a', password: 'b' },
    impersonate: { user: 'x', uid: '1', groups: ['g'] },
    token: 't',
    tokenFile: { file: '/t' },
  })
})

const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'x', interactiveMode: 'Never' }
const pem = Buffer.from('-----BEGIN').toString('base64')

it.each([
  ['no YAML', 'a: [1\nb: 2', /not valid YAML: \/home\/ada\/\.kube\/config:2:\d: /],
  ['a tab', 'clusters:\n\t- x', /config:2:1/],
  ['a manifest', 'kind: Service', /is a Service, not a kubeconfig/],
  ['a list', '[1]', /must be/],
  [
    'a number for a token',
    'users: [{name: u, user: {token: 12345}}]',
    /users\[0\]\.user\.token must be text; put it in quotes/,
  ],
  ['clusters that are no list', 'clusters: {a: 1}', /clusters must be a list/],
  [
    'no current-context',
    'contexts: [{name: a, context: {}}, {name: b, context: {}}]',
    /does not set current-context. Choose a context: a, b/,
  ],
  ['no contexts', '{}', /does not set current-context. It has no contexts/],
  [
    'a current-context that is not there',
    'current-context: z\ncontexts: [{name: a, context: {}}]',
    /does not have its current-context "z". Choose a context: a/,
  ],
  [
    'a context without cluster',
    'current-context: a\ncontexts: [{name: a, context: {}}]',
    /context "a" in .* has no cluster/,
  ],
  [
    'a cluster that is not there',
    one.replace('cluster: c,', 'cluster: z,'),
    /names the cluster "z", which does not exist. Known clusters: c/,
  ],
  ['a user that is not there', one.replace('user: u}', 'user: z}'), /names the user "z".*Known users: u/],
  ['no server', config({ server: '' }), /server of cluster "c" in .* is empty/],
  ['a server that is no URL', config({ server: 'ftp://x' }), /server of cluster "c".* is not an http or https URL/],
  ['a server with a password', config({ server: 'https://a:hidden@x' }), /must not contain a user/],
  [
    'bad base64',
    config({ 'certificate-authority-data': '%%%hidden' }),
    /certificate-authority-data of cluster "c".* is not base64/,
  ],
  [
    'bad base64 of a key',
    config({}, { 'client-key-data': 'hidden!', 'client-certificate-data': pem }),
    /client-key-data of user "u".*not base64/,
  ],
  [
    'insecure and a CA',
    config({ 'insecure-skip-tls-verify': true, 'certificate-authority-data': pem }),
    /sets both insecure-skip-tls-verify/,
  ],
  ['a key without certificate', config({}, { 'client-key-data': pem }), /has client-key but no client-certificate/],
  ['a certificate without key', config({}, { 'client-certificate': 'x' }), /has client-certificate but no client-key/],
  [
    'auth-provider',
    config({}, { 'auth-provider': { name: 'gcp' } }),
    /auth-provider, which Kubernetes removed in 1.26/,
  ],
  [
    'an old plugin',
    config({}, { exec: { ...exec, apiVersion: 'client.authentication.k8s.io/v1alpha1' } }),
    /exec.apiVersion of user "u"/,
  ],
  ['a plugin without command', config({}, { exec: { ...exec, command: '' } }), /exec.command of user "u".* is empty/],
  [
    'a v1 plugin without interactiveMode',
    config({}, { exec: { ...exec, interactiveMode: null } }),
    /exec.interactiveMode of user "u"/,
  ],
])('explains %s, and gives no secret away', (_, text, message) => {
  let caught: unknown
  try {
    resolve(text)
  } catch (error) {
    caught = error
  }
  expect(caught).toMatchObject({ name: 'KpngError', message: expect.stringMatching(message) })
  expect(String((caught as Error).message)).not.toMatch(/hidden|12345/)
  expect((caught as Error).message).toContain('config')
})

it('names the context that was asked for', () => {
  expect(() => resolve(one, { context: 'nope' })).toThrow('does not have a context "nope"')
})

it('takes a v1beta1 plugin without interactiveMode, and finds a relative one beside the file', () => {
  const old = { apiVersion: 'client.authentication.k8s.io/v1beta1', command: './bin/login' }
  expect(resolve(config({}, { exec: old })).user.exec).toMatchObject({
    interactiveMode: 'IfAvailable',
    command: '/home/ada/.kube/bin/login',
  })
  expect(resolve(config({}, { exec })).user.exec?.command).toBe('x')
})
