// Fails on an import that the architecture does not allow. The table of packages is the one in CONTRIBUTING.md. Data flows
// source → store → view → sink, so inside core the order of the folders is fixed. In every package neither files nor folders
// may import each other in a circle.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Which packages a folder may import. */
export const mayImport = {
  api: [],
  client: ['@kpng/api'],
  core: ['@kpng/api', '@kpng/client'],
  dataplane: ['@kpng/api', '@kpng/client'],
  diagnose: ['@kpng/api', '@kpng/client', '@kpng/dataplane'],
  linux: ['@kpng/api'],
  backends: ['@kpng/api', '@kpng/client', '@kpng/dataplane', '@kpng/linux'],
  // It runs on top of the nftables backend.
  'backends/ebpf': ['@kpng/api', '@kpng/client', '@kpng/dataplane', '@kpng/linux', '@kpng/backend-nft'],
  node: ['@kpng/api', '@kpng/client', '@kpng/dataplane', '@kpng/diagnose', '@kpng/linux'],
  dashboard: ['@kpng/api'],
  playground: ['@kpng/api'],
  conformance: ['@kpng/api', '@kpng/linux'],
  cli: ['*'],
}

/** Inside core: which folders each folder may import. */
export const coreFlow = {
  store: [],
  view: ['store'],
  kubernetes: ['store'],
  record: [],
  sources: ['store', 'kubernetes', 'record'],
  sinks: ['store', 'view', 'record'],
}

const importPattern =
  /(?:^|\n)\s*(?:import|export)\b[^'"\n]*?(?:\n[^'"]*?)?from\s*['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]|(?:^|\n)\s*import\s*['"]([^'"]+)['"]/g

/** The module names that a source text imports. */
export function importsOf(text) {
  return [...text.matchAll(importPattern)].map((match) => match[1] ?? match[2] ?? match[3])
}

/** The folder of the package that a file belongs to: `core`, `backends/nft`. */
const packageOf = (file) => {
  const parts = file.split(sep)
  return parts.slice(0, parts[0] === 'backends' ? 2 : 1).join('/')
}

/** Why `file` (a path relative to the root) may not import `specifier`, or undefined if it may. */
export function violation(file, specifier) {
  const folder = packageOf(file)
  // From facts to a diagnosis: whoever has the facts hands them in.
  if (folder === 'diagnose' && specifier.startsWith('node:')) return 'diagnose/ is pure: it may not import Node modules'
  const allowed = mayImport[folder] ?? mayImport[folder.split('/')[0]]
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
  const target = targetOf(file, specifier)
  const targetParts = target.split(sep)
  if (!`${target}/`.startsWith(`${folder}/`)) return `reaches out of ${folder}/ by a relative path (${specifier})`
  if (folder !== 'core') return undefined
  const from = file.split(sep)[1]
  const to = targetParts[1]
  const flow = coreFlow[from]
  if (!flow || targetParts.length < 3 || from === to || flow.includes(to)) return undefined
  return `core/${from} may import ${flow.map((name) => `core/${name}`).join(', ') || 'no other core folder'}, not core/${to}`
}

/** The source file that a relative import leads to. */
const targetOf = (file, specifier, extension = '.ts') =>
  relative('/', resolve('/', dirname(file), specifier)).replace(/\.js$/, extension)

/**
 * The circles in a graph: for each group of nodes that all reach each other, one shortest way round.
 * @param graph a Map from each node to the set of nodes that it imports
 */
export function circlesIn(graph) {
  const circles = []
  const done = new Set()
  for (const start of [...graph.keys()].sort()) {
    if (done.has(start)) continue
    const circle = shortestWay(graph, start)
    if (!circle) continue
    circles.push(circle)
    const fromStart = reachable(graph, start)
    for (const node of fromStart) if (reachable(graph, node).has(start)) done.add(node)
  }
  return circles
}

/** The nodes on a shortest way from a node back to itself, or undefined if there is none. */
function shortestWay(graph, start) {
  const before = new Map()
  const queue = [start]
  for (const node of queue) {
    for (const next of graph.get(node) ?? []) {
      if (next === start) {
        const way = [node]
        while (way[0] !== start) way.unshift(before.get(way[0]))
        return way
      }
      if (!before.has(next)) {
        before.set(next, node)
        queue.push(next)
      }
    }
  }
  return undefined
}

function reachable(graph, start) {
  const found = new Set()
  const queue = [start]
  for (const node of queue) {
    for (const next of graph.get(node) ?? []) {
      if (found.has(next)) continue
      found.add(next)
      queue.push(next)
    }
  }
  return found
}

/**
 * The circles of a package's files and of its folders.
 * @param imports a Map from each file (relative to the root) to the names that it imports
 */
export function circles(imports) {
  const files = new Map()
  const folders = new Map()
  const add = (graph, from, to) => graph.set(from, (graph.get(from) ?? new Set()).add(to))
  for (const [file, specifiers] of imports) {
    for (const specifier of specifiers.filter((name) => name.startsWith('.'))) {
      const target = ['.ts', '.tsx']
        .map((extension) => targetOf(file, specifier, extension))
        .find((path) => imports.has(path))
      if (!target) continue
      add(files, file, target)
      const [from, to] = [dirname(file), dirname(target)]
      // The files directly in a package's folder are both its entrance and what its folders share, so they have no place in the order.
      if (from !== to && from !== packageOf(file) && to !== packageOf(target)) add(folders, from, to)
    }
  }
  return [...circlesIn(files), ...circlesIn(folders)]
}

/** Every violation below a root folder, as sentences. Tests may import what they like, because they drive real parts. */
export function check(root) {
  const found = []
  const imports = new Map()
  for (const file of Object.keys(mayImport).flatMap((top) => sourcesBelow(join(root, top)))) {
    const name = relative(root, file)
    imports.set(name, importsOf(readFileSync(file, 'utf8')))
    for (const specifier of imports.get(name)) {
      const why = violation(name, specifier)
      if (why) found.push(`${name}: ${why}`)
    }
  }
  for (const circle of circles(imports)) {
    found.push(`${[...circle, circle[0]].join(' → ')}: they import each other in a circle`)
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
    return /\.tsx?$/.test(entry.name) && !entry.name.endsWith('.test.ts') ? [path] : []
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const found = check(join(dirname(fileURLToPath(import.meta.url)), '..'))
  if (found.length > 0) {
    console.error(`Imports that the architecture does not allow (see CONTRIBUTING.md):\n  ${found.join('\n  ')}`)
    process.exit(1)
  }
}
