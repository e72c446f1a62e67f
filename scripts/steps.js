// Small steps shared by the npm scripts. Plain JavaScript: they run before anything is installed.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = join(dirname(fileURLToPath(import.meta.url)), '..')

/** Runs a program of the checkout. If it fails, this process ends with its exit code. */
export function run(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: root, stdio: 'inherit', killSignal: 'SIGKILL', ...options })
  if (result.error?.code === 'ETIMEDOUT') {
    console.error(`${command} did not end within ${options.timeout / 60_000} minutes and was killed.`)
    process.exit(1)
  }
  if (result.error) {
    console.error(`${command} could not be started: ${result.error.message}`)
    process.exit(1)
  }
  if (result.status !== 0) process.exit(result.status ?? 1)
}

/** The path of a program that an npm package of this checkout brings. */
export const bin = (name) => join(root, 'node_modules', '.bin', process.platform === 'win32' ? `${name}.cmd` : name)

/** Installs the npm packages of the lock file, unless they are there already. */
export function install() {
  const marker = join(root, 'node_modules', '.package-lock.json')
  const lock = join(root, 'package-lock.json')
  if (existsSync(marker) && statSync(marker).mtimeMs >= statSync(lock).mtimeMs) return
  console.log('Installing npm packages …')
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  run(npm, ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { shell: process.platform === 'win32' })
}

/** Compiles every package to its dist/ folder, and bundles the dashboard; what did not change is left as it is. */
export function build() {
  run(bin('tsc'), ['-b', 'tsconfig.json'], { shell: process.platform === 'win32' })
  run(process.execPath, [join('dashboard', 'build.js')])
}

/** What to put before a command, so that it runs in a network namespace of its own. Nothing without root and the tools for it. */
export function ownNamespace() {
  const command = ['unshare', '--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh']
  const isPossible = process.getuid?.() === 0 && spawnSync(command[0], [...command.slice(1), 'true']).status === 0
  return isPossible ? command : undefined
}

/** Runs commands at the same time. What one prints comes when it has ended, so that it is not mixed with the others; of one that failed, after all others. */
export async function runBeside(jobs) {
  const started = Date.now()
  console.log(
    `\n── tests ${jobs.map(({ part }) => part).join(', ')}, at the same time: what they print comes at their end`,
  )
  const ended = await Promise.all(
    jobs.map(async ({ part, namespace, command, options }) => {
      const [program, ...args] = [...namespace, ...command]
      const child = spawn(program, args, { cwd: root, killSignal: 'SIGKILL', ...options })
      const chunks = []
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => chunks.push(chunk))
      const code = await new Promise((resolve) => child.on('error', () => resolve(1)).on('close', resolve))
      const output = `\n── tests ${part}\n${Buffer.concat(chunks)}`
      if (code === 0) process.stdout.write(output)
      console.log(`   tests ${part}: ${((Date.now() - started) / 1000).toFixed(1)} s${code === 0 ? '' : ', failed'}`)
      return { code, output }
    }),
  )
  const failed = ended.filter(({ code }) => code !== 0)
  if (failed.length === 0) return
  // process.exit would cut what a pipe has not taken yet.
  process.exitCode = failed[0].code ?? 1
  process.stdout.write(failed.map(({ output }) => output).join(''))
}
