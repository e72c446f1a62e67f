import { KpngError } from '@kpng/api'

// kubectl's `-o jsonpath=…`, as far as people use it: fields, indexes, slices by `*`, filters that compare, `range` and texts.

type Step =
  | { readonly field: string }
  | { readonly index: number }
  | { readonly all: true }
  | { readonly path: readonly Step[]; readonly isEqual: boolean; readonly to: unknown }

type Part =
  | { readonly text: string }
  | { readonly path: readonly Step[] }
  | { readonly range: readonly Step[]; readonly parts: readonly Part[] }

/** Throws if the template cannot be read. Values of several matches stand beside each other with a space between them. */
export function jsonPath(template: string): (value: unknown) => string {
  const tokens = template.match(/\{(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^{}"'])*\}|[^{]+|\{/gs) ?? []
  const parts = partsOf(tokens, 0, false, template)
  return (value) => rendered(parts.parts, value, value)
}

const unreadable = (template: string, what: string): KpngError =>
  new KpngError('usage', `The jsonpath ${template} cannot be read: ${what}. Write it as {.services[*].name}.`)

function partsOf(
  tokens: readonly string[],
  from: number,
  isRange: boolean,
  template: string,
): { readonly parts: Part[]; readonly next: number } {
  const parts: Part[] = []
  for (let at = from; at < tokens.length; at++) {
    const token = tokens[at] as string
    if (token === '{') throw unreadable(template, 'a brace is not closed')
    const inner = /^\{\s*(.*?)\s*\}$/s.exec(token)?.[1]
    if (inner === undefined) parts.push({ text: token })
    else if (inner === 'end') {
      if (isRange) return { parts, next: at }
      throw unreadable(template, '{end} has no {range …} before it')
    } else if (/^range\s/.test(inner)) {
      const body = partsOf(tokens, at + 1, true, template)
      parts.push({ range: stepsOf(inner.replace(/^range\s+/, ''), template), parts: body.parts })
      at = body.next
    } else if (/^["']/.test(inner)) parts.push({ text: literalOf(inner, template) as string })
    else parts.push({ path: stepsOf(inner, template) })
  }
  if (isRange) throw unreadable(template, '{range …} has no {end}')
  return { parts, next: tokens.length }
}

function stepsOf(text: string, template: string): Step[] {
  const steps: Step[] = []
  const pattern =
    /\s*(?:\.?\[\?\(\s*@((?:[^=!"']|\\.)+?)\s*(==|!=)\s*("(?:\\.|[^"])*"|'(?:\\.|[^'])*'|[^)\s]+)\s*\)\]|\.?\[(\*|-?\d+|'[^']*'|"[^"]*")\]|\.\*|\.?((?:\\.|[\w/-])+)|[$@.])/gy
  let end = 0
  for (let found = pattern.exec(text); found; found = pattern.exec(text)) {
    end = pattern.lastIndex
    const [whole, path, operator, literal = '', bracket, field] = found
    if (path !== undefined)
      steps.push({ path: stepsOf(path, template), isEqual: operator === '==', to: literalOf(literal, template) })
    else if (bracket === '*' || whole.trim() === '.*') steps.push({ all: true })
    else if (bracket !== undefined)
      steps.push(/^["']/.test(bracket) ? { field: bracket.slice(1, -1) } : { index: Number(bracket) })
    else if (field !== undefined) steps.push({ field: field.replace(/\\(.)/g, '$1') })
  }
  if (text.slice(end).trim() !== '') throw unreadable(template, `"${text.slice(end)}" is not a part of a path`)
  return steps
}

/** A text in quotes with its escapes, or a value of JSON. */
function literalOf(text: string, template: string): unknown {
  try {
    if (!text.startsWith("'")) return JSON.parse(text)
    const content = text
      .slice(1, -1)
      .replace(/\\'/g, "'")
      .replace(/(?<!\\)"/g, '\\"')
    return JSON.parse(`"${content}"`)
  } catch {
    throw unreadable(template, `${text} is not a value`)
  }
}

function rendered(parts: readonly Part[], value: unknown, root: unknown): string {
  const texts = parts.map((part) => {
    if ('text' in part) return part.text
    if ('range' in part)
      return found(part.range, value)
        .map((each) => rendered(part.parts, each, root))
        .join('')
    return found(part.path, value).map(textOf).join(' ')
  })
  return texts.join('')
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

function found(steps: readonly Step[], value: unknown): unknown[] {
  return steps.reduce((values, step) => values.flatMap((each) => taken(step, each)), [value])
}

function taken(step: Step, value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return []
  const members: unknown[] = Array.isArray(value) ? value : Object.values(value)
  if ('all' in step) return members
  if ('path' in step) return members.filter((each) => found(step.path, each).includes(step.to) === step.isEqual)
  if ('index' in step) return Array.isArray(value) && value.at(step.index) !== undefined ? [value.at(step.index)] : []
  return Object.hasOwn(value, step.field) ? [(value as Record<string, unknown>)[step.field]] : []
}
