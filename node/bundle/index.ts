import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { gzipSync } from 'node:zlib'
import { type CollectOptions, collect } from './collect.js'
import { nameHasher, namesIn, privateNames } from './hash-names.js'
import { withoutSecrets } from './secrets.js'
import { type ArchivedFile, tarOf } from './tar.js'

export interface BundleOptions extends CollectOptions {
  /** Replace names and addresses by hashes. */
  readonly hashNames: boolean
  /** More names to replace: of Services, pods and nodes that no file lists. */
  readonly knownNames?: Iterable<string>
}

export interface Bundle {
  /** A .tar.gz */
  readonly archive: Buffer
  readonly files: readonly string[]
  /** What could not be read, and why. */
  readonly missing: readonly string[]
}

/** Everything that helps with a bug report, as one archive. Never rejects because something cannot be read. */
export async function makeBundle(options: BundleOptions): Promise<Bundle> {
  const { files, missing } = await collect(options)
  const clean = files.map(({ path, text }) => ({ path, text: withoutSecrets(text) }))
  const hide = options.hashNames ? hasher(clean, options.knownNames ?? []) : (text: string) => text
  const shown = clean.map(({ path, text }) => ({ path, text: hide(text) }))
  // Its own words are no names, even if a Service is called like one of them.
  const reasons = missing.map(({ what, reason }) => ({ what, reason: hide(withoutSecrets(reason)) }))
  const all = [...shown, readme(files, reasons, options.hashNames)]
  const inFolder = all.map(({ path, text }) => ({ path: `kpng-bundle/${path}`, text }))
  return {
    archive: gzipSync(tarOf(inFolder, Date.now())),
    files: all.map(({ path }) => path),
    missing: missing.map(({ what, reason }) => `${what}: ${reason}`),
  }
}

function hasher(files: readonly ArchivedFile[], knownNames: Iterable<string>): (text: string) => string {
  const names = namesIn(files.map(({ text }) => text))
  for (const name of privateNames([...knownNames, hostname()])) names.add(name)
  return nameHasher(names, randomBytes(16).toString('hex'))
}

function readme(
  files: readonly ArchivedFile[],
  missing: readonly { readonly what: string; readonly reason: string }[],
  hashNames: boolean,
): ArchivedFile {
  const names = hashNames
    ? 'Names of objects and IP addresses are replaced by hashes. The same name has the same hash in all files of this archive.'
    : 'Names of objects and IP addresses are in it. Make it with --hash-names to replace them.'
  const lines = [
    'What kpng knows about this node, for a bug report.',
    '',
    'Kubeconfigs, tokens and keys are not in it; of the environment, it has what environment.txt shows. Look through the files before you publish them.',
    names,
    '',
    'Files:',
    ...files.map(({ path }) => `  ${path}`),
    '',
    'Not in it:',
    ...(missing.length > 0 ? missing.map(({ what, reason }) => `  ${what}: ${reason}`) : ['  nothing is missing']),
    '',
  ]
  return { path: 'README.txt', text: lines.join('\n') }
}
