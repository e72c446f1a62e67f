import { type ChildProcess, spawn } from 'node:child_process'
import { KpngError, messageOf } from '@kpng/api'
import * as v from 'valibot'
import { type ClusterConfig, type ExecConfig, readText } from './config.js'

/** What a credential plugin returns. */
export interface ExecCredential {
  readonly token: string | undefined
  readonly certificate: { readonly cert: string; readonly key: string } | undefined
  /** When it expires. Undefined: when the API server refuses it. */
  readonly expiresAtMs: number | undefined
}

export interface ExecOptions {
  readonly env: NodeJS.ProcessEnv
  /** How long the plugin may take. */
  readonly timeoutMs: number
  /** Whether a person can answer the plugin's questions. */
  readonly interactive: boolean
}

const nonEmpty = v.pipe(v.string(), v.minLength(1))

const credentialSchema = v.looseObject({
  kind: v.literal('ExecCredential'),
  apiVersion: v.string(),
  status: v.looseObject({
    token: v.nullish(nonEmpty),
    clientCertificateData: v.nullish(nonEmpty),
    clientKeyData: v.nullish(nonEmpty),
    expirationTimestamp: v.nullish(v.pipe(v.string(), v.isoTimestamp())),
  }),
})

/** Runs a credential plugin of `client.authentication.k8s.io`: never through a shell, and never longer than its time limit. */
export async function runExecPlugin(
  exec: ExecConfig,
  cluster: ClusterConfig,
  options: ExecOptions,
): Promise<ExecCredential> {
  if (exec.interactiveMode === 'Always' && !options.interactive) {
    throw new KpngError(
      'unsupported',
      `The ${exec.field} has interactiveMode Always, and there is no terminal. Log in where there is one, or use another user.`,
    )
  }
  const interactive = exec.interactiveMode !== 'Never' && options.interactive
  const info = {
    kind: 'ExecCredential',
    apiVersion: exec.apiVersion,
    spec: { interactive, ...(exec.provideClusterInfo && { cluster: await clusterInfo(exec, cluster) }) },
  }
  const env = { ...options.env, ...exec.env, KUBERNETES_EXEC_INFO: JSON.stringify(info) }
  return parseCredential(exec, await outputOf(exec, env, interactive, options.timeoutMs))
}

async function clusterInfo(exec: ExecConfig, cluster: ClusterConfig): Promise<Record<string, unknown>> {
  const ca = cluster.certificateAuthority && (await readText(cluster.certificateAuthority))
  return {
    server: cluster.server,
    ...(cluster.tlsServerName && { 'tls-server-name': cluster.tlsServerName }),
    ...(cluster.insecureSkipTlsVerify && { 'insecure-skip-tls-verify': true }),
    ...(ca && { 'certificate-authority-data': Buffer.from(ca).toString('base64') }),
    ...(cluster.proxyUrl && { 'proxy-url': cluster.proxyUrl }),
    config: exec.clusterExtension,
  }
}

function outputOf(exec: ExecConfig, env: NodeJS.ProcessEnv, interactive: boolean, timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const out: Buffer[] = []
    const err: Buffer[] = []
    const fail = (why: string, cause?: unknown) => {
      const hint = exec.installHint ? ` Hint: ${exec.installHint}` : ''
      const said = lastLine(Buffer.concat(err).toString('utf8'))
      const quote = said ? ` It said: ${said}` : ''
      const sentence = `The credential plugin ${exec.command} (${exec.field}) ${why}.${quote}${hint}`
      reject(new KpngError('unavailable', sentence, { cause }))
    }
    let child: ChildProcess
    try {
      child = spawn(exec.command, exec.args, {
        env,
        stdio: [interactive ? 'inherit' : 'ignore', 'pipe', 'pipe'],
        windowsHide: true,
      })
    } catch (error) {
      // Node throws some failures, such as ENOMEM, and emits others.
      return fail(`cannot be started: ${messageOf(error)}`, error)
    }
    child.stdout?.on('data', (chunk: Buffer) => out.push(chunk))
    child.stderr?.on('data', (chunk: Buffer) => err.push(chunk))
    // SIGKILL: a plugin that waits for its own child process may ignore SIGTERM, and it has nothing to save.
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      child.stdout?.destroy()
      child.stderr?.destroy()
      fail(`did not end within ${timeoutMs / 1000} s`)
    }, timeoutMs)
    child.once('error', (error) => {
      clearTimeout(timer)
      const missing = (error as NodeJS.ErrnoException).code === 'ENOENT'
      fail(missing ? 'is not installed, or not in PATH' : `cannot be started: ${error.message}`, error)
    })
    child.once('close', (status, signal) => {
      clearTimeout(timer)
      if (status === 0) resolve(Buffer.concat(out).toString('utf8'))
      else fail(signal ? `was ended by ${signal}` : `failed with exit code ${status}`)
    })
  })
}

function parseCredential(exec: ExecConfig, output: string): ExecCredential {
  // What the plugin printed is secret: errors name the field, never its value.
  const fail = (why: string) =>
    new KpngError(
      'invalid',
      `The credential plugin ${exec.command} (${exec.field}) ${why}. Run it by hand, or update it.`,
    )
  let json: unknown
  try {
    json = JSON.parse(output)
  } catch {
    throw fail('did not print JSON')
  }
  const parsed = v.safeParse(credentialSchema, json)
  if (!parsed.success) {
    throw fail(
      `printed something that is not an ExecCredential: its ${v.getDotPath(parsed.issues[0]) ?? 'output'} is wrong`,
    )
  }
  const { apiVersion, status } = parsed.output
  if (apiVersion !== exec.apiVersion) {
    throw fail(`answered with apiVersion "${apiVersion.slice(0, 60)}" where the kubeconfig asks for ${exec.apiVersion}`)
  }
  const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = status
  if (!cert !== !key) throw fail('gave only one of clientCertificateData and clientKeyData')
  if (!token && !cert) throw fail('gave neither a token nor a client certificate')
  return {
    token: token ?? undefined,
    certificate: cert && key ? { cert, key } : undefined,
    expiresAtMs: expirationTimestamp ? Date.parse(expirationTimestamp) : undefined,
  }
}

/** The last line of a plugin's messages, without anything that looks like a secret. */
function lastLine(text: string): string {
  const line = text.trim().split('\n').at(-1) ?? ''
  return line.replace(/[A-Za-z0-9_+/=.-]{40,}/g, '[left out]').slice(0, 300)
}
