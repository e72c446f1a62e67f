// Files out of packages of the npm registry, for platforms other than this one. Downloaded once, checked always.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'

/** Without a network, npm would try for minutes. */
const longestDownloadMs = 120_000

/** One file of `name@version`, as bytes. `cache` is a folder that keeps the archives. */
export function fileOf({ name, version, file, integrity }, cache) {
  const archive = join(cache, `${name.replace('@', '').replace('/', '-')}-${version}.tgz`)
  if (!existsSync(archive)) download(`${name}@${version}`, archive, cache)
  const bytes = readFileSync(archive)
  const found = `sha512-${createHash('sha512').update(bytes).digest('base64')}`
  if (found !== integrity) {
    throw new Error(
      `${archive} is not the ${name}@${version} that is pinned (${found}, not ${integrity}). Delete it and try again.`,
    )
  }
  const content = entryOf(gunzipSync(bytes), file)
  if (!content) throw new Error(`${name}@${version} has no ${file}. Correct scripts/package/targets.js.`)
  return content
}

function download(packageAndVersion, archive, cache) {
  mkdirSync(cache, { recursive: true })
  const windows = process.platform === 'win32'
  const args = ['pack', packageAndVersion, '--json', '--pack-destination', cache, '--loglevel=error']
  const { status, stdout, stderr, error } = spawnSync(windows ? 'npm.cmd' : 'npm', args, {
    cwd: cache,
    encoding: 'utf8',
    shell: windows,
    timeout: longestDownloadMs,
  })
  if (status !== 0) {
    throw new Error(`npm could not download ${packageAndVersion}: ${error?.message ?? stderr}. Check the npm registry.`)
  }
  const written = join(cache, JSON.parse(stdout)[0].filename)
  if (written !== archive) renameSync(written, archive)
}

/** The content of one file of a tar archive. */
export function entryOf(tar, path) {
  const text = (from, length) => tar.toString('latin1', from, from + length).replace(/\0.*$/s, '')
  for (let at = 0; at + 512 <= tar.length && tar[at] !== 0; ) {
    const size = Number.parseInt(text(at + 124, 12), 8)
    const prefix = text(at + 345, 155)
    const name = prefix ? `${prefix}/${text(at, 100)}` : text(at, 100)
    if (name === path) return tar.subarray(at + 512, at + 512 + size)
    at += 512 + Math.ceil(size / 512) * 512
  }
  return undefined
}
