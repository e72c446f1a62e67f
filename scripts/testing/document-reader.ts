import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Lab } from '@kpng/linux/testing'
import type { Judges } from './document-blocks.js'
import { commandsOf, isCommands } from './document-commands.js'
import { DocumentSession } from './document-session.js'
import type { Block } from './documents.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Somebody who reads the documents in a network namespace, with a cluster, and types every command. */
export class Reader implements Judges {
  #folder = ''
  #lab: Lab<'reader'> | undefined
  #cluster: ChildProcess | undefined

  async start(): Promise<void> {
    this.#folder = mkdtempSync(join(tmpdir(), 'kpng-docs-'))
    this.#lab = await Lab.start({ hosts: ['reader'], roles: { reader: 'router' } })
    const [program = '', ...args] = this.#inside([
      ...[process.execPath, join(root, 'scripts/testing/document-cluster.js'), this.#kubeconfig],
    ])
    this.#cluster = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    await this.#clusterReady()
    writePrograms(join(this.#folder, 'bin'))
  }

  #clusterReady(): Promise<void> {
    return new Promise((resolve, reject) => {
      const ended = (code: number | null) => reject(new Error(`The playground ended with exit code ${code}.`))
      this.#cluster?.once('exit', ended)
      this.#cluster?.stdout?.once('data', () => {
        this.#cluster?.off('exit', ended)
        resolve()
      })
    })
  }

  async close(): Promise<void> {
    await this.#lab?.close()
    if (this.#folder !== '') rmSync(this.#folder, { recursive: true, force: true })
  }

  readonly apply = (text: string): string =>
    this.#refusal(text, (file) => ['kubectl', 'apply', '--dry-run=server', '-f', file])

  readonly readState = (text: string): string =>
    this.#refusal(text, (file) => ['kpng', 'file', '-i', file, 'to-local', 'to-nft', '--dry-run'])

  readonly readConfiguration = (text: string): string =>
    this.#refusal(text, (file) => ['kpng', 'kube', 'to-local', 'to-nft', '--dry-run', '--config', file])

  /** What a command says against a file with this text: its errors, and warnings about what it skipped. */
  #refusal(text: string, command: (file: string) => string[]): string {
    const file = join(this.#folder, 'block.yaml')
    writeFileSync(file, text)
    const [program = '', ...args] = this.#inside(command(file))
    const { status, stderr } = spawnSync(program, args, { encoding: 'utf8', env: this.#env })
    const warnings = stderr
      .split('\n')
      .filter((line) => line.startsWith('W') && /[Ss]kipped|ignored|not served/.test(line))
    return status === 0 ? warnings.join('\n') : stderr.trim()
  }

  /** Runs the commands of a page, and returns what failed. */
  async follow(path: string, blocks: readonly Block[]): Promise<string[]> {
    const isReady = this.#clusterReady()
    this.#cluster?.stdin?.write('start over\n')
    await isReady
    const folder = mkdtempSync(join(this.#folder, 'page-'))
    layOut(folder, this.#kubeconfig)
    // A temporary folder of its own: a playground removes what others left, and cannot see that others still run.
    const TMPDIR = join(folder, '.tmp')
    mkdirSync(TMPDIR)
    const session = new DocumentSession(path, folder, this.#inside(harmless(folder)), { ...this.#env, TMPDIR })
    for (const [index, block] of blocks.entries()) {
      if (block.notRun !== undefined) continue
      for (const text of block.before)
        for (const command of commandsOf({ ...block, text, before: [] })) await session.run(command)
      if (!isCommands(block)) continue
      const next = blocks[index + 1]
      const commands = commandsOf(block)
      for (const command of commands.slice(0, -1)) await session.run(command)
      for (const command of commands.slice(-1)) {
        const { exitCode } = block
        await session.run({ ...command, exitCode, ...(next?.isOutput ? { shown: next.text } : {}) })
      }
    }
    await session.close()
    return session.faults
  }

  #inside(command: readonly string[]): string[] {
    return this.#lab?.inside('reader', command) ?? []
  }

  get #kubeconfig(): string {
    return join(this.#folder, 'kubeconfig')
  }

  get #env(): NodeJS.ProcessEnv {
    const PATH = `${join(this.#folder, 'bin')}:${process.env.PATH}:/usr/sbin:/sbin`
    return {
      ...process.env,
      PATH,
      HOME: this.#folder,
      KUBECONFIG: this.#kubeconfig,
      NODE_NAME: 'worker-1',
      NO_COLOR: '1',
    }
  }
}

/** `kpng` as if it were installed; `npx` without the second that npm takes; `sudo` for somebody who is root already: it keeps no KUBECONFIG. */
function writePrograms(folder: string): void {
  mkdirSync(folder)
  const scripts = Object.fromEntries(
    ['kpng', 'kpng-json', 'kpng-callout'].map((name) => [
      name,
      `exec '${process.execPath}' '${join(root, `cli/bin/${name}.js`)}' "$@"`,
    ]),
  )
  for (const [name, line] of Object.entries({ ...scripts, npx: 'exec "$@"', sudo: 'exec env -u KUBECONFIG "$@"' })) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${line}\n`)
    chmodSync(join(folder, name), 0o755)
  }
}

/** A folder like a checkout. What commands write stays in it, and examples may be edited. */
function layOut(folder: string, kubeconfig: string): void {
  const hidden = ['.git', 'examples', 'release']
  for (const name of readdirSync(root).filter((name) => !hidden.includes(name)))
    symlinkSync(join(root, name), join(folder, name))
  cpSync(join(root, 'examples'), join(folder, 'examples'), { recursive: true })
  for (const name of ['admin.conf', 'kube-proxy.kubeconfig']) cpSync(kubeconfig, join(folder, name))
  const config = {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    clusterCIDR: '10.244.0.0/16',
  }
  writeFileSync(
    join(folder, 'config.conf'),
    JSON.stringify({ ...config, mode: 'nftables', clientConnection: { kubeconfig } }),
  )
}

/**
 * A command line that runs another one where it can do no harm, whatever a document says: only the checkout and temporary files can be
 * written, but not the packages in it; no other process can be seen, and everything ends with it. It has a /run and a /var/lib of its own, with kube-proxy's settings.
 */
const harmless = (folder: string): string[] => [
  ...['unshare', '--mount', '--pid', '--fork', '--mount-proc', '--kill-child', 'sh', '-c'],
  [
    'mount -t tmpfs none /run && mount -t tmpfs none /var/lib && mkdir -p /run/kpng /var/lib/kube-proxy /var/lib/kpng',
    'cp "$1/config.conf" /var/lib/kube-proxy/',
    'mount --bind "$2" "$2" && mount --bind "$3" "$3" && mount -o remount,bind,ro /',
    'cd "$2" && mount --bind node_modules node_modules && mount -o remount,bind,ro "$2/node_modules"',
    'cd "$1" && shift 3 && exec "$@"',
  ].join(' && '),
  ...['sh', folder, root, tmpdir()],
]
