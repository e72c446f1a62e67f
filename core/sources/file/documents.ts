import { KpngError, messageOf } from '@kpng/api'
import { isMap, isNode, isScalar, LineCounter, type ParsedNode, parseAllDocuments, YAMLParseError } from 'yaml'
import type { Place } from '../../kubernetes/fields.js'
import { giveUp } from './plain-scalars.js'
import { locateInLongYaml, locateInPlainYaml, type Position, readLongYaml, readPlainYaml } from './plain-yaml.js'

/**
 * The full parser needs a second and 80 MB of memory for each megabyte. Of a longer text it gets only those items of lists that
 * are beyond plain YAML.
 */
const longestForFullParser = 1_000_000

/** The documents of a YAML or JSON file. A mistake is an error with file, line and column. */
export function readDocuments(file: string, given: string): unknown[] {
  const json = readJson(given)
  if (json) return json
  const text = normalized(given)
  if (text.length > longestForFullParser) return readLong(file, text)
  return readPlainYaml(text) ?? parseFully(file, text, 1)
}

function readLong(file: string, text: string): unknown[] {
  const documents = readLongYaml(text, (item, line) => {
    const [items] = parseFully(file, item, line)
    return Array.isArray(items) ? items[0] : giveUp()
  })
  if (Array.isArray(documents)) return documents
  const why = 'This is not YAML, or uses more of YAML here than kpng reads in a file of this size'
  const where = `${file}:${documents.line}:${documents.column}`
  throw new KpngError('invalid', `${where}: ${why}. Check the indentation, or split the file.`)
}

/** To YAML, all line ends are the same. */
const normalized = (text: string): string => (text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text)

/** An error that points at a value in a file which is of the wrong kind. */
export function wrongValue(file: string, text: string, document: number, place: Place, message: string): KpngError {
  const { line, column } = locate(text, document, place)
  return new KpngError('invalid', `${file}:${line}:${column}: ${message}`)
}

/** JSON is YAML, but JSON.parse reads it in a fraction of the time. */
function readJson(text: string): unknown[] | undefined {
  const first = text.trimStart()[0]
  if (first !== '{' && first !== '[') return undefined
  try {
    return [JSON.parse(text)]
  } catch {
    return undefined
  }
}

/** @param firstLine the number of the text's first line in its file */
function parseFully(file: string, text: string, firstLine: number): unknown[] {
  const documents = parsed(text, new LineCounter())
  for (const document of documents) {
    const [mistake] = document.errors
    if (mistake) throw mistakeAt(file, mistake, firstLine)
  }
  return documents.map((document) => {
    try {
      return document.toJS() as unknown
    } catch (error) {
      // Aliases are followed only now: one may lead nowhere, or to far too much.
      throw new KpngError('invalid', `${file}:${firstLine}:1: This is not YAML: ${messageOf(error)}`, { cause: error })
    }
  })
}

/** An empty text gives an empty array with extra properties. */
const parsed = (text: string, lineCounter: LineCounter) => [
  ...parseAllDocuments<ParsedNode>(text, { lineCounter, prettyErrors: true, logLevel: 'silent' }),
]

function mistakeAt(file: string, mistake: Error, firstLine: number): KpngError {
  const at = mistake instanceof YAMLParseError ? mistake.linePos?.[0] : undefined
  const line = (at?.line ?? 1) + firstLine - 1
  // The parser's message ends with the line itself and a caret, which a log line cannot show; its first sentence says it all.
  const [sentence = ''] = mistake.message.split('\n')
  const said = sentence.replace(/ at line \d+, column \d+:?$/, '')
  return new KpngError('invalid', `${file}:${line}:${at?.col ?? 1}: This is not YAML: ${said}`, { cause: mistake })
}

function locate(given: string, document: number, place: Place): Position {
  const text = normalized(given)
  if (text.length > longestForFullParser) return locateInLongYaml(text, document, place)
  const plain = locateInPlainYaml(text, document, place)
  if (plain) return plain
  const lineCounter = new LineCounter()
  const documents = parsed(text, lineCounter)
  let node: unknown = documents[document]?.contents
  for (const step of place) {
    const inside: unknown = isMap(node)
      ? node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step))?.value
      : isNode(node) && 'get' in node
        ? (node.get as (key: unknown, keepScalar: boolean) => unknown)(step, true)
        : undefined
    if (inside === undefined || inside === null) break
    node = inside
  }
  const offset = isNode(node) ? node.range?.[0] : undefined
  if (offset === undefined) return { line: 1, column: 1 }
  const { line, col } = lineCounter.linePos(offset)
  return { line, column: col }
}
