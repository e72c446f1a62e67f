// Names become parts of paths (`namespace/name/key`, `namespace|name|source|key`), of rule comments and of log lines. Kubernetes'
// own names are stricter than this; state files and relays may bring others, and these must not break a path.

const longest = 253

/** What keeps a text from being a name (of a namespace, service, source, pod or node), or undefined when nothing does. */
export function nameProblem(name: string): string | undefined {
  if (name === '') return 'it is empty'
  if (name.length > longest) return `it is longer than ${longest} characters`
  for (let index = 0; index < name.length; index++) {
    const code = name.charCodeAt(index)
    if (code === 0x2f || code === 0x7c) return `it has a ${JSON.stringify(name[index])} in it`
    if (code <= 0x20 || code === 0x7f) return 'it has a blank or a control character in it'
    if (code > 0x7f && /[\p{Z}\p{C}]/u.test(name)) return 'it has a blank or a control character in it'
  }
  return undefined
}

export const isName = (name: string): boolean => nameProblem(name) === undefined
