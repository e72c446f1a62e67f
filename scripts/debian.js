// The kernel suites and those of the live page need a few tools. On Debian, as root, they are installed; elsewhere the suites that miss one say so.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { windowsKoffi, windowsNode } from './testing/windows-node.js'

/** Program → the Debian package that brings it. */
const packages = {
  chromium: 'chromium',
  ip: 'iproute2',
  nft: 'nftables',
  iptables: 'iptables',
  conntrack: 'conntrack',
  curl: 'curl',
  fish: 'fish',
  jq: 'jq',
  openssl: 'openssl',
  promtool: 'prometheus',
  wine: 'wine',
  'x86_64-w64-mingw32-gcc': 'gcc-mingw-w64-x86-64',
  zsh: 'zsh',
  // On a machine with systemd the package would start a web server, so it is left to you there.
  ...(existsSync('/run/systemd/system') ? {} : { nginx: 'nginx-light' }),
}

const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin']
const isThere = (program) => folders.some((folder) => existsSync(join(folder, program)))

export function installTools() {
  const missing = Object.keys(packages).filter((program) => !isThere(program))
  if (missing.length === 0) return
  const mayInstall = process.getuid?.() === 0 && existsSync('/etc/debian_version') && isThere('apt-get')
  if (!mayInstall) {
    console.log(`Not on this machine: ${missing.join(', ')}. The suites that need them will say that they are skipped.`)
    return
  }
  const names = missing.map((program) => packages[program])
  console.log(`Installing Debian packages: ${names.join(', ')} …`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  for (const args of [
    ['update', '-qq'],
    ['install', '-y', '-qq', '--no-install-recommends', ...names],
  ]) {
    const { status } = spawnSync('apt-get', args, { stdio: ['ignore', 'ignore', 'inherit'], env })
    if (status !== 0) {
      console.log(
        `apt-get ${args[0]} failed. The suites that need ${missing.join(', ')} will say that they are skipped.`,
      )
      return
    }
  }
}

/** A slow network must not stop the tests. */
const longestBuildMs = 180_000

/** Builds the VM that some suites boot, from Debian packages in a cache folder, unless it is there. Installs nothing. */
export function buildVm() {
  const build = fileURLToPath(new URL('../linux/testing/vm/build', import.meta.url))
  const started = Date.now()
  const { status, error } = spawnSync(build, { stdio: ['ignore', 'ignore', 'inherit'], timeout: longestBuildMs })
  const seconds = ((Date.now() - started) / 1000).toFixed(1)
  if (status === 0) {
    console.log(`The test VM is built (${seconds} s).`)
    return
  }
  // So that no suite tries again, which may take long without a network.
  process.env.KPNG_NO_VM = `The VM could not be built (${error?.message ?? `see above; after ${seconds} s`}).`
  console.log(`${process.env.KPNG_NO_VM} The suites that need it will say that they are skipped.`)
}

/** Downloads Node and koffi for Windows, which some suites run under wine. They have no network to download anything themselves. */
export function fetchWindowsNode() {
  if (!isThere('wine')) return
  try {
    windowsNode()
    windowsKoffi()
  } catch (error) {
    console.log(`${error.message} The suites that need it will say that they are skipped.`)
  }
}
