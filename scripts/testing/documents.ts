import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

// Documents as data: their fenced blocks, headings and links, each with its line.

/** A fenced block. */
export interface Block {
  /** The first word after the opening fence; empty if there is none. */
  readonly language: string
  readonly text: string
  /** Line of the first line of `text`. */
  readonly line: number
  /** From the comments above the block: `<!-- not run: REASON -->`. */
  readonly notRun?: string
  /** `<!-- before: COMMAND -->`: commands that a reader has run on another page. */
  readonly before: readonly string[]
  /** `<!-- runs until stopped -->`: the commands go on until they are stopped, and the next ones run beside them. */
  readonly untilStopped: boolean
  /** `<!-- exit code 1 -->`: how the last command ends. Without it: 0. */
  readonly exitCode: number
  /** `<!-- excerpt -->`: not a complete program or object. */
  readonly excerpt: boolean
  /** `<!-- output -->`: what the last command above prints. */
  readonly isOutput: boolean
}

export interface Link {
  readonly target: string
  readonly line: number
}

export interface Document {
  /** Relative to the repository. */
  readonly path: string
  readonly blocks: readonly Block[]
  readonly links: readonly Link[]
  readonly anchors: ReadonlySet<string>
}

const hidden = new Set(['node_modules', 'dist', 'release', 'coverage'])

/** Every Markdown file of the repository that users read. */
export function findDocuments(root: string, folder = root): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory())
      return hidden.has(entry.name) || entry.name.startsWith('.') ? [] : findDocuments(root, path)
    return entry.name.endsWith('.md') ? [relative(root, path)] : []
  })
}

const fence = /^( *)(`{3,}|~{3,}) *([\w-]*)/
const comment = /<!-- *(.*?) *-->/

export function readDocument(root: string, path: string): Document {
  const lines = readFileSync(join(root, path), 'utf8').split('\n')
  const blocks: Block[] = []
  const links: Link[] = []
  const headings: string[] = []
  let comments: string[] = []
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] ?? ''
    const open = fence.exec(line)
    if (open) {
      const [, indent = '', marks = '', language = ''] = open
      const first = index + 1
      const body: string[] = []
      for (index++; index < lines.length && !lines[index]?.trim().startsWith(marks); index++)
        body.push((lines[index] ?? '').slice(Math.min(indent.length, (lines[index] ?? '').search(/\S|$/))))
      blocks.push({ language, text: body.join('\n'), line: first + 1, ...directives(comments) })
      comments = []
      continue
    }
    const note = comment.exec(line)?.[1]
    if (note !== undefined) comments.push(note)
    else if (line.trim() !== '') comments = []
    const heading = /^#{1,6} +(.*)$/.exec(line)?.[1]
    if (heading !== undefined) headings.push(heading)
    const prose = line.replace(/`[^`]*`/g, (code) => '·'.repeat(code.length))
    for (const found of prose.matchAll(/\]\(([^)\s]+)\)/g)) links.push({ target: found[1] ?? '', line: index + 1 })
  }
  return { path, blocks, links, anchors: anchorsOf(headings) }
}

function directives(comments: readonly string[]): Omit<Block, 'language' | 'text' | 'line'> {
  const given = (name: string) =>
    comments.filter((text) => text.startsWith(`${name}:`)).map((text) => text.slice(name.length + 1).trim())
  const [notRun] = given('not run')
  return {
    ...(notRun === undefined ? {} : { notRun }),
    before: given('before'),
    untilStopped: comments.includes('runs until stopped'),
    exitCode: Number(comments.map((text) => /^exit code (\d+)$/.exec(text)?.[1]).find(Boolean) ?? 0),
    excerpt: comments.includes('excerpt'),
    isOutput: comments.includes('output'),
  }
}

/** The anchors that GitHub makes of headings. */
function anchorsOf(headings: readonly string[]): Set<string> {
  const anchors = new Set<string>()
  for (const heading of headings) {
    const words = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .trim()
      .toLowerCase()
    const slug = words.replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '').replaceAll(' ', '-')
    let anchor = slug
    for (let count = 1; anchors.has(anchor); count++) anchor = `${slug}-${count}`
    anchors.add(anchor)
  }
  return anchors
}

/** What is wrong with the links of a document: files and headings that do not exist. */
export function brokenLinks(root: string, document: Document, documents: ReadonlyMap<string, Document>): string[] {
  return document.links.flatMap(({ target, line }) => {
    if (/^[a-z]+:/i.test(target)) return []
    const [file = '', anchor] = decodeURI(target).split('#')
    const path = file === '' ? document.path : relative(root, join(root, dirname(document.path), file))
    if (!existsSync(join(root, path))) return [`${document.path}:${line}: ${target}: there is no file ${path}.`]
    const anchors = documents.get(path)?.anchors
    if (anchor === undefined || anchors === undefined || anchors.has(anchor)) return []
    return [
      `${document.path}:${line}: ${target}: ${path} has no heading #${anchor}. It has: ${[...anchors].join(', ')}.`,
    ]
  })
}
