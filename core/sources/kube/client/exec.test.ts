import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { Authority, base64, temporaryFolder } from '../testing/certificates.js'
import { startSecureApi } from '../testing/secure-api.js'
import { type ConnectionOptions, loadConnection } from './connection.js'

const folder = temporaryFolder()
const authority = new Authority()
afterAll(() => {
  folder.remove()
  authority.remove()
})
const pair = authority.issue('kube-apiserver', { names: 'IP:127.0.0.1' })
const v1 = 'client.authentication.k8s.io/v1'

let count = 0
/** A plugin: a script that notes how it was called and runs some shell. */
function plugin(script: string): { command: string; calls: () => string[] } {
  const command = join(folder.path, `plugin${count++}`)
  const notes = `${command}.calls`
  writeFileSync(notes, '')
  writeFileSync(command, `#!/bin/sh\necho "$*|$EXTRA|$KUBERNETES_EXEC_INFO" >> ${notes}\n${script}\n`)
  chmodSync(command, 0o755)
  return { command, calls: () => readFileSync(notes, 'utf8').split('\n').filter(Boolean) }
}

const printing = (status: object, apiVersion = v1) =>
  plugin(`cat <<'END'\n${JSON.stringify({ kind: 'ExecCredential', apiVersion, status })}\nEND`)

function kubeconfig(server: string, exec: object): string {
  const file = join(folder.path, `config${count++}`)
  const cluster = {
    server,
    'certificate-authority-data': base64(authority.cert),
    extensions: [{ name: 'client.authentication.k8s.io/exec', extension: { audience: 'x' } }],
  }
  const content = {
    'current-context': 'x',
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { exec: { apiVersion: v1, interactiveMode: 'Never', ...exec } } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  }
  writeFileSync(file, JSON.stringify(content))
  return file
}

async function connect(
  exec: object,
  options: ConnectionOptions = {},
  accepts: (token?: string) => boolean = () => true,
) {
  const api = await startSecureApi({ ...pair, ca: authority.cert }, ({ authorization }) =>
    accepts(authorization) ? 200 : 401,
  )
  onTestFinished(api.stop)
  const connection = await loadConnection({
    kubeconfig: kubeconfig(api.url, exec),
    env: { PATH: process.env.PATH },
    interactive: false,
    ...options,
  })
  onTestFinished(() => connection.close())
  const get = async () => {
    const { status, body } = await connection.request({ path: '/version' })
    body.resume()
    return status
  }
  return { get, api }
}

it('runs the plugin with its arguments and environment, once', async () => {
  const { command, calls } = printing({ token: 'abc' })
  const { get, api } = await connect({ command, args: ['get token', '$HOME'], env: [{ name: 'EXTRA', value: 'e' }] })
  await Promise.all([get(), get(), get()])
  expect(api.seen.map(({ authorization }) => authorization)).toEqual(Array(3).fill('Bearer abc'))
  expect(calls()).toHaveLength(1)
  const [args, extra, info] = calls()[0]?.split('|') ?? []
  expect([args, extra]).toEqual(['get token $HOME', 'e'])
  expect(JSON.parse(info ?? '')).toEqual({ kind: 'ExecCredential', apiVersion: v1, spec: { interactive: false } })
})

it('tells the plugin of the cluster when it wants to know', async () => {
  const { command, calls } = printing({ token: 'abc' })
  const { api } = await connect({ command, provideClusterInfo: true })
  expect(JSON.parse(calls()[0]?.split('|')[2] ?? '').spec.cluster).toEqual({
    server: api.url,
    'certificate-authority-data': base64(authority.cert),
    config: { audience: 'x' },
  })
})

it('runs it again when the credential has expired, and not before', async () => {
  const old = printing({ token: 'abc', expirationTimestamp: new Date(Date.now() - 1_000).toISOString() })
  const expired = await connect({ command: old.command })
  await expired.get()
  expect(old.calls()).toHaveLength(3)

  const fresh = printing({ token: 'abc', expirationTimestamp: new Date(Date.now() + 3_600_000).toISOString() })
  const valid = await connect({ command: fresh.command })
  await valid.get()
  expect(fresh.calls()).toHaveLength(1)
})

it('runs it again when the server refuses the credential', async () => {
  const { command, calls } = plugin(
    `n=$(wc -l < "$0.calls"); printf '{"kind":"ExecCredential","apiVersion":"${v1}","status":{"token":"t%s"}}' $n`,
  )
  const { get } = await connect({ command }, {}, (token) => token === 'Bearer t2')
  expect(await Promise.all([get(), get(), get()])).toEqual([200, 200, 200])
  expect(await get()).toBe(200)
  expect(calls()).toHaveLength(2)
})

it('uses a client certificate of the plugin, and v1beta1', async () => {
  const { cert, key } = authority.issue('plugged')
  const beta = 'client.authentication.k8s.io/v1beta1'
  const { command } = printing({ clientCertificateData: cert, clientKeyData: key }, beta)
  const { get, api } = await connect({ command, apiVersion: beta })
  await get()
  expect(api.seen[0]?.clientName).toBe('plugged')
})

describe('explains', () => {
  const fails = async (exec: object, options: ConnectionOptions = {}): Promise<string> => {
    const file = kubeconfig('https://127.0.0.1:1', exec)
    const base = { env: { PATH: process.env.PATH }, interactive: false }
    const error = await loadConnection({ kubeconfig: file, ...base, ...options }).catch((caught: Error) => caught)
    expect(error).toMatchObject({ name: 'KpngError' })
    return (error as Error).message
  }

  it('a plugin that is not installed, with its hint', async () => {
    expect(await fails({ command: 'no-such-plugin', installHint: 'Install it from example.com.' })).toMatch(
      /plugin no-such-plugin \(exec of user "u" in .*\) is not installed, or not in PATH. Hint: Install it from example.com./,
    )
  })

  it('a plugin whose start Node refuses with an exception, as it does when memory is short', async () => {
    const { command } = plugin('')
    expect(await fails({ command, args: ['x'.repeat(300_000)] })).toMatch(/cannot be started: spawn E2BIG/)
  })

  it('a plugin that fails, in its own words and without secrets', async () => {
    const secret = `eyJ${'hidden'.repeat(10)}`
    const { command } = plugin(`echo "first line" >&2; echo "please log in: ${secret}" >&2; echo ${secret}; exit 3`)
    const message = await fails({ command })
    expect(message).toMatch(/failed with exit code 3. It said: please log in: \[left out\]/)
    expect(message).not.toContain('hidden')
  })

  it('a plugin that does not end', async () => {
    const { command } = plugin('exec sleep 60')
    expect(await fails({ command }, { execTimeoutMs: 200 })).toMatch(/did not end within 0.2 s/)
  })

  it('a plugin that needs a person', async () => {
    const { command, calls } = printing({ token: 'x' })
    expect(await fails({ command, interactiveMode: 'Always' })).toMatch(
      /interactiveMode Always, and there is no terminal/,
    )
    expect(calls()).toEqual([])
  })

  it.each([
    ['not JSON', 'echo hidden', /did not print JSON/],
    ['another kind', `echo '{"kind":"hidden"}'`, /not an ExecCredential: its kind is wrong/],
    ['no status', `echo '{"kind":"ExecCredential","apiVersion":"${v1}"}'`, /its status is wrong/],
    [
      'another version',
      `echo '{"kind":"ExecCredential","apiVersion":"v9","status":{"token":"hidden"}}'`,
      /apiVersion "v9" where/,
    ],
    ['nothing in it', `echo '{"kind":"ExecCredential","apiVersion":"${v1}","status":{}}'`, /neither a token nor/],
    [
      'half a certificate',
      `echo '{"kind":"ExecCredential","apiVersion":"${v1}","status":{"clientKeyData":"hidden"}}'`,
      /only one of/,
    ],
    [
      'a bad time',
      `echo '{"kind":"ExecCredential","apiVersion":"${v1}","status":{"token":"hidden","expirationTimestamp":"soon"}}'`,
      /status.expirationTimestamp is wrong/,
    ],
  ])('a plugin that prints %s', async (_, script, message) => {
    const said = await fails({ command: plugin(script).command })
    expect(said).toMatch(message)
    expect(said).not.toContain('hidden')
  })

  it('a plugin with an expired certificate', async () => {
    const { cert, key } = authority.issue('old', { days: -1 })
    const { command } = printing({ clientCertificateData: cert, clientKeyData: key })
    expect(await fails({ command })).toMatch(/clientCertificateData of the plugin in exec of user "u".* expired at/)
  })
})
