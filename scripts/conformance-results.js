// node scripts/conformance-results.js <name>=<report.json> ...: keeps the results of `kpng conformance --json` in conformance/results, and writes the table of
// docs/conformance.md from all that is kept there. With <name>+=<report.json>, the cases of the report take the place of those that are kept: for a run in
// parts, or with SCTP cells from another kernel. KERNEL=… and VERSION=… say what was proved, if that is not this kernel and this kpng. Without arguments:
// only the table.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { release } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'
import { root } from './steps.js'

const folder = join(root, 'conformance', 'results')
/** Compressed, so that a search of the repository does not find them, and a diff does not show thousands of lines. */
const ending = '.json.gz'
const page = join(root, 'docs', 'conformance.md')
const [begin, end] = ['<!-- results -->\n', '<!-- end of results -->\n']

/** What is kept of a report: how many cells of each case are right, deviate, were skipped or are wrong, and why, with where to read more. */
export function resultOf(report, { date, kernel, version }) {
  const cases = {}
  const links = {}
  for (const { case: id, status, reason, link } of report.results) {
    cases[id] ??= { right: 0 }
    cases[id][status] = (cases[id][status] ?? 0) + 1
    if (reason === undefined || status === 'right') continue
    cases[id].reasons = [...new Set([...(cases[id].reasons ?? []), reason])]
    if (link !== undefined) links[reason] = link
  }
  return { date, kernel, version, summary: report.summary, cases, links }
}

/** A kept result with the cases of another one in their place. These say when and where they were seen. */
export function merged(kept, added) {
  const { date, kernel, version } = added
  const cases = { ...kept.cases }
  for (const [id, found] of Object.entries(added.cases)) cases[id] = { ...found, seen: { date, kernel, version } }
  const statuses = ['right', 'wrong', 'unstable', 'deviates', 'unexpectedly-right', 'skipped']
  const counts = statuses.map((status) => [
    status,
    Object.values(cases).reduce((sum, found) => sum + (found[status] ?? 0), 0),
  ])
  const cells = counts.reduce((sum, [, count]) => sum + count, 0)
  const links = { ...kept.links, ...added.links }
  return { ...kept, summary: { cells, ...Object.fromEntries(counts) }, cases, links }
}

/** The cases that were seen in another run than the rest of their result, as rows. */
function addedRows(name, { cases }) {
  const runs = new Map()
  for (const [id, { seen }] of Object.entries(cases)) {
    if (!seen) continue
    const run = [seen.date, seen.kernel, seen.version].join(' | ')
    runs.set(run, [...(runs.get(run) ?? []), `\`${id}\``])
  }
  return [...runs].map(([run, ids]) => `| ${name} | ${ids.join(' ')} | ${run} |`)
}

const read = (path) => JSON.parse(gunzipSync(readFileSync(path)).toString())

/** All that is kept, by name. */
export const results = () =>
  new Map(
    readdirSync(folder)
      .filter((file) => file.endsWith(ending))
      .sort()
      .map((file) => [file.slice(0, -ending.length), read(join(folder, file))]),
  )

/** @param kept by name */
export function tablesOf(kept) {
  const names = [...kept.keys()]
  const row = (cells) => `| ${cells.join(' | ')} |`
  const all = [...new Set([...kept.values()].flatMap(({ cases }) => Object.keys(cases)))]
  const reasons = new Map()
  const noteOf = (reason) => {
    if (!reasons.has(reason)) reasons.set(reason, reasons.size + 1)
    return reasons.get(reason)
  }
  const cell = (found) => {
    if (!found) return '–'
    const notes = (found.reasons ?? []).map(noteOf)
    const marks = [
      ...(found.wrong ? [`✗ ${found.wrong}`] : []),
      ...(found.unstable ? [`≈ ${found.unstable}`] : []),
      ...(found.right || found['unexpectedly-right'] ? [`✓ ${found.right + (found['unexpectedly-right'] ?? 0)}`] : []),
      ...(found.deviates ? [`~ ${found.deviates}`] : []),
      ...(found.skipped ? [`- ${found.skipped}`] : []),
    ]
    return `${marks.join(', ')}${notes.length > 0 ? ` (${notes.join(', ')})` : ''}`
  }
  const summary = [
    row(['proxy', 'right', 'named deviations', 'skipped', 'wrong', 'seen', 'kernel', 'version']),
    row(Array(8).fill('---')),
    ...[...kept].map(([name, { summary: sum, date, kernel, version }]) =>
      row([name, sum.right + sum['unexpectedly-right'], sum.deviates, sum.skipped, sum.wrong, date, kernel, version]),
    ),
  ]
  const table = [
    row(['case', ...names]),
    row(['---', ...names.map(() => '---')]),
    ...all.map((id) => row([`\`${id}\``, ...names.map((name) => cell(kept.get(name).cases[id]))])),
  ]
  const links = Object.assign({}, ...[...kept.values()].map((result) => result.links))
  // The page is beside kpng's other documents.
  const more = (reason) => (links[reason] ? ` ([more](${links[reason].replace(/^docs\//, '')}))` : '')
  const notes = [...reasons].map(([reason, number]) => `${number}. ${reason}${more(reason)}`)
  const added = [...kept].flatMap(([name, result]) => addedRows(name, result))
  const otherRuns = [
    ...['Of these, seen in runs of their own, such as those in the VM:', ''],
    ...[row(['proxy', 'cases', 'seen', 'kernel', 'version']), row(Array(5).fill('---')), ...added, ''],
  ]
  return `${[...summary, '', ...(added.length > 0 ? otherRuns : []), ...table, '', 'Why cells deviate or were skipped:', '', ...notes].join('\n')}\n`
}

/** The page with the tables of what is kept. */
export function pageWith(text, kept) {
  const [before, rest] = text.split(begin)
  const after = rest.slice(rest.indexOf(end))
  return `${before}${begin}\n${tablesOf(kept)}\n${after}`
}

/** What is wrong with how the script was called. */
class UsageError extends Error {}

/** An argument, taken apart, with the report that it names. */
function given(argument) {
  const [, name, isMore, file] = /^([\w-]+)(\+?)=(.+)$/.exec(argument) ?? []
  if (!file) throw new UsageError(`"${argument}" is not of the form NAME=REPORT.json or NAME+=REPORT.json.`)
  const path = join(folder, `${name}${ending}`)
  if (isMore && !existsSync(path))
    throw new UsageError(`There is no kept result "${name}" to add to. Give ${name}=${file} first, with all cases.`)
  return { path, isMore, report: reportIn(file) }
}

function reportIn(file) {
  let report
  try {
    report = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new UsageError(`The report ${file} cannot be read: ${error.message.replace(/\s+/g, ' ')}`)
  }
  if (!Array.isArray(report?.results) || typeof report.summary !== 'object')
    throw new UsageError(`${file} is not a report. Make one with kpng conformance --json ${file}.`)
  return report
}

function keep(args) {
  const about = {
    date: new Date().toISOString().slice(0, 10),
    kernel: process.env.KERNEL ?? release().split('-')[0],
    version: process.env.VERSION ?? JSON.parse(readFileSync(join(root, 'cli', 'package.json'), 'utf8')).version,
  }
  // Nothing is written unless all arguments are right.
  for (const { path, isMore, report } of args.map(given)) {
    const seen = resultOf(report, about)
    const result = isMore ? merged(read(path), seen) : seen
    writeFileSync(path, gzipSync(`${JSON.stringify(result)}\n`))
  }
  writeFileSync(page, pageWith(readFileSync(page, 'utf8'), results()))
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    keep(process.argv.slice(2))
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    console.error(error.message)
    process.exitCode = 2
  }
}
