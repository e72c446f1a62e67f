import { KpngError } from '@kpng/api'
import { isMap, isNode, isScalar, LineCounter, type ParsedNode, parseAllDocuments, YAMLParseError } from 'yaml'
import type { Place } from '../objects/fields.js'
import { locateInPlainYaml, type Position, readPlainYaml } from './plain-yaml.js'

/** The documents of a YAML or JSON file. A mistake is an error with file, line and column. */
export function readDocuments(file: string, text: string): unknown[] {
  const json = readJson(text)
  if (json) return json
  const plain = readPlainYaml(text)
  if (plain) return plain
  const { documents } = parseFully(text)
  for (const document of documents) {
    const [mistake] = document.errors
    if (mistake) throw mistakeAt(file, mistake)
  }
  return documents.map((document) => document.toJS() as unknown)
}

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

function parseFully(text: string) {
  const lineCounter = new LineCounter()
  const documents = parseAllDocuments<ParsedNode>(text, { lineCounter, prettyErrors: true, logLevel: 'silent' })
  // An empty text gives an empty array with extra properties.
  return { lineCounter, documents: [...documents] }
}

function mistakeAt(file: string, mistake: Error): KpngError {
  const at = mistake instanceof YAMLParseError ? mistake.linePos?.[0] : undefined
  // The parser's message ends with the line itself and a caret, which a log line cannot show; its first sentence says it all.
  const [sentence = ''] = mistake.message.split('\n')
  const said = sentence.replace(/ at line \d+, column \d+:?$/, '')
  return new KpngError('invalid', `${file}:${at?.line ?? 1}:${at?.col ?? 1}: This is not YAML: ${said}`, {
    cause: mistake,
  })
}

function locate(text: string, document: number, place: Place): Position {
  const plain = locateInPlainYaml(text, document, place)
  if (plain) return plain
  const { documents, lineCounter } = parseFully(text)
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
