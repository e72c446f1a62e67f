import { showAll } from './data/shown.js'
import { enterList } from './parts/virtual-list.js'
import { currentRoute, goTo } from './route.js'

// Keys that work everywhere: / searches, j and k enter the list, Esc goes back, and two keys change the page.

const pages: Readonly<Record<string, string>> = { s: '#/', c: '#/changes', o: '#/connections', n: '#/nodes' }
const lists: Readonly<Record<string, string>> = { changes: 'changes', connections: 'connections', nodes: 'nodes' }

export function listenForKeys(): void {
  let last = ''
  addEventListener('keydown', (event) => {
    const isField = /^(INPUT|SELECT|TEXTAREA)$/.test((event.target as HTMLElement).tagName)
    if (isField || event.ctrlKey || event.metaKey || event.altKey) {
      last = ''
      return
    }
    const { page } = currentRoute()
    const target = last === 'g' ? pages[event.key] : undefined
    last = event.key
    if (target !== undefined) goTo(target)
    else if (event.key === '/') {
      event.preventDefault()
      document.getElementById('search')?.focus()
    } else if (event.key === 'j' || event.key === 'k') enterList(lists[page] ?? 'services')
    else if (event.key === 'Escape') goBack()
  })
}

function goBack(): void {
  const { page, rest } = currentRoute()
  if (page === 'changes' && rest.length > 0) goTo('#/changes')
  else if (page !== '') goTo('#/')
  else showAll()
}
