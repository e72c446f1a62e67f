import { spawnSync } from 'node:child_process'
import type { Block } from './documents.js'

/** A command of a document. */
export interface DocumentCommand {
  readonly line: number
  readonly text: string
  /** It goes on until it is stopped; the commands after it run beside it. */
  readonly untilStopped: boolean
  /** How it ends. Default 0. */
  readonly exitCode?: number
  /** What it prints, according to the document. */
  readonly shown?: string
}

/** Why a block may be left out. A reason may go on after one of these words, with a detail. */
export const reasons = [
  'needs a real cluster',
  'needs a container runtime',
  'needs Windows',
  'needs macOS',
  'needs systemd',
  'needs the internet',
  'needs a collector',
  'has placeholders',
  'takes minutes',
  'changes this machine',
  'is a part of a command',
  'is tested by', // and the path of the test
] as const

const shells = new Set(['sh', 'bash', 'shell', 'console', 'powershell'])
const others = new Set([
  ...['text', 'yaml', 'yml', 'json', 'jsonc', 'ts', 'typescript', 'js', 'javascript', 'diff', 'nft', 'promql', 'proto'],
  ...['ini', 'toml', 'dockerfile', 'mermaid', 'html', 'svg', 'makefile', 'go'],
])
const programs =
  /^(\$ )?([A-Z_]+=\S+ )*(sudo |npx )?(kpng|kpng-json|kpng-callout|npm|npx|kubectl|curl|nft|ip|docker|node|openssl|systemctl|conntrack|git|export|cd|install|helm)( (?!.*[─►│])|$)/

/** Whether a block holds commands. A block without a language does if its first line starts with a program. */
export function isCommands({ language, text }: Block): boolean {
  return language === ''
    ? programs.test(text.split('\n').find((line) => !/^\s*(#|$)/.test(line)) ?? '')
    : shells.has(language)
}

export const isKnownLanguage = ({ language }: Block): boolean =>
  language === '' || shells.has(language) || others.has(language)

/** The commands of a block, with continued lines, quotes, loops and here-documents in one piece. */
export function commandsOf(block: Block): DocumentCommand[] {
  const lines = block.text.split('\n')
  const hasPrompts = lines.some((line) => line.startsWith('$ '))
  const commands: DocumentCommand[] = []
  for (let index = 0; index < lines.length; index++) {
    const first = lines[index] ?? ''
    if (hasPrompts ? !first.startsWith('$ ') : /^\s*(#|$)/.test(first)) continue
    const line = block.line + index
    let text = hasPrompts ? first.slice(2) : first
    while (!isComplete(text) && index + 1 < lines.length) text += `\n${lines[++index]}`
    commands.push({ line, text, untilStopped: block.untilStopped || runsUntilStopped(text) })
  }
  return commands
}

/** The words of a command that runs kpng: by itself, after sudo or npx, or in a container, after `--`. Undefined for other programs. */
export function kpngWords({ text }: DocumentCommand): string[] | undefined {
  const line = text
    .replace(/\\\n\s*/g, ' ')
    .replace(/\s+#.*$/, '')
    .replace(/\s+[|>&].*$/, '')
  const found = /^(?:.* -- |sudo |npx )*kpng(-json|-callout)?(?: (.*))?$/.exec(line)
  if (!found) return undefined
  const short = { '-json': ['local', 'to-json'], '-callout': ['local', 'to-callout'] }[found[1] ?? ''] ?? []
  const words = (found[2] ?? '').matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)
  return [...short, ...[...words].map(([, single, double, bare]) => single ?? double ?? bare ?? '')]
}

function isComplete(text: string): boolean {
  if (text.endsWith('\\')) return false
  const here = /<<-? *['"]?(\w+)['"]?/.exec(text)?.[1]
  if (
    here !== undefined &&
    !text
      .split('\n')
      .slice(1)
      .some((line) => line.trim() === here)
  )
    return false
  return !/['"({]|\b(for|while|if|case)\b/.test(text) || spawnSync('bash', ['-n'], { input: text }).status === 0
}

/** Servers and followers: they are started, waited for, and stopped at the end of the page. */
function runsUntilStopped(text: string): boolean {
  const words = text
    .replace(/\s#.*$/gm, '')
    .replace(/\\\n/g, ' ')
    .split(/\s+/)
  const ends = ['--once', '--dry-run', '--init-only', '--help', '-h', '--version'].some((flag) => words.includes(flag))
  if (
    /(^|[\s/])kpng(-json|-callout)?\s/.test(`${text} `) &&
    !/ -- |^(curl|kubectl|echo|nft|sudo install|install)\b/.test(text)
  )
    return (
      !ends &&
      (/\bkpng-(json|callout)\b/.test(text) || words.some((word) => word.startsWith('to-') || word === 'playground'))
    )
  if (/^npm (start|run example)\b/.test(text.replace(/^sudo /, ''))) return true
  return (
    /^kubectl\b/.test(text) &&
    words.some((word) => ['-w', '--watch'].includes(word) || (word === '-f' && words.includes('logs')))
  )
}

/** Two commands with the same key cannot run at the same time: they listen on the same address, or own the same rules. */
export function exclusiveKey(text: string): string {
  const listen = /--listen[ =](\S+)/.exec(text)?.[1] ?? 'default'
  if (/\bto-api\b/.test(text)) return `to-api ${listen.replace('tcp://', '')}`
  // A playground serves the kpng API too.
  if (/^npm start|\bplayground\b/.test(text)) return `to-api ${listen.replace('tcp://', '')}`
  return /\bto-(nft|userspacelin)\b/.exec(text)?.[0] ?? text
}
