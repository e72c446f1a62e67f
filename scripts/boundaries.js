// Fails on an import that the architecture does not allow. The table is the one in CONTRIBUTING.md:
// data flows source → store → view → sink, and no folder reaches back.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Which packages a folder may import, by folder. The longest matching folder counts. */
export const mayImport = {
  api: [],
  client: ['@kpng/api'],
  core: ['@kpng/api', '@kpng/client'],
  dataplane: ['@kpng/api', '@kpng/client'],
  linux: ['@kpng/api'],
  backends: ['@kpng/api', '@kpng/client', '@kpng/dataplane', '@kpng/linux'],
  node: ['@kpng/api', '@kpng/client', '@kpng/dataplane', '@kpng/linux'],
  playground: ['@kpng/api'],
  conformance: ['@kpng/api', '@kpng/linux'],
  cli: ['*'],
}

/** Inside core the folders are edges of the flow: which sibling folders each may reach. */
export const coreFlow = {
  store: [],
  view: ['store'],
  kubernetes: ['store'],
  sources: ['store', 'kubernetes'],
  sinks: ['store', 'view'],
}

const importPattern =
  /(?:^|\n)\s*(?:import|export)\b[^'"\n]*?(?:\n[^'"]*?)?from\s*['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]|(?:^|\n)\s*import\s*['"]([^'"]+)['"]/g

/** The module names that a source text imports. */
export function importsOf(text) {
  return [...text.matchAll(importPattern)].map((match) => match[1] ?? match[2] ?? match[3])
}

/** Why `file` (a path relative to the root) may not import `specifier`, or undefined when it may. */
export function violation(file, specifier) {
  const parts = file.split(sep)
  const folder = parts[0] === 'backends' ? parts.slice(0, 2).join('/') : parts[0]
  const allowed = mayImport[folder] ?? mayImport[parts[0]]
  if (!allowed) return undefined
  if (specifier.startsWith('.')) return relativeViolation(file, folder, specifier)
  if (!specifier.startsWith('@kpng/') && specifier !== 'kpng' && !specifier.startsWith('kpng/')) return undefined
  const packageName = specifier.startsWith('@') ? specifier.split('/').slice(0, 2).join('/') : 'kpng'
  if (allowed.includes('*') || allowed.includes(packageName)) return undefined
  if (packageName === ownName(folder)) return `imports its own package by name; use a relative path`
  return `${folder}/ may import ${allowed.join(', ') || 'no other package'}, not ${packageName}`
}

const ownName = (folder) => (folder.startsWith('backends/') ? `@kpng/backend-${folder.slice(9)}` : `@kpng/${folder}`)

function relativeViolation(file, folder, specifier) {
  const target = relative('/', resolve('/', dirname(file), specifier))
  const targetParts = target.split(sep)
  if (!`${target}/`.startsWith(`${folder}/`)) return `reaches out of ${folder}/ by a relative path (${specifier})`
  if (folder !== 'core') return undefined
  const from = file.split(sep)[1]
  const to = targetParts[1]
  const flow = coreFlow[from]
  if (!flow || targetParts.length < 3 || from === to || flow.includes(to)) return undefined
  return `core/${from} may reach ${flow.map((name) => `core/${name}`).join(', ') || 'no other core folder'}, not core/${to}`
}

/** Every violation below a root folder, as "file: sentence". Tests may import what they like to drive real parts. */
export function check(root) {
  const found = []
  for (const top of Object.keys(mayImport).map((folder) => folder.split('/')[0])) {
    for (const file of sourcesBelow(join(root, top))) {
      const name = relative(root, file)
      for (const specifier of importsOf(readFileSync(file, 'utf8'))) {
        const why = violation(name, specifier)
        if (why) found.push(`${name}: ${why}`)
      }
    }
  }
  return [...new Set(found)]
}

function sourcesBelow(folder) {
  let entries
  try {
    entries = readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return ['dist', 'node_modules', 'testing'].includes(entry.name) ? [] : sourcesBelow(path)
    return entry.name.endsWith('.ts') && !entry.name.endsWith('.test.ts') ? [path] : []
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const found = check(join(dirname(fileURLToPath(import.meta.url)), '..'))
  if (found.length > 0) {
    console.error(`Imports that the architecture does not allow (see CONTRIBUTING.md):\n  ${found.join('\n  ')}`)
    process.exit(1)
  }
}
