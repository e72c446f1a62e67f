import { computed, signal } from '@preact/signals'

// The page that is shown: `#/` (with the filter of the list after a `?`), `#/service/<namespace>/<name>`, `#/changes[/<number>]`, `#/connections`, `#/nodes`.

const hash = signal(location.hash)
const follow = (): void => {
  hash.value = location.hash
}
addEventListener('hashchange', follow)

const path = computed(() => hash.value.replace(/^#\/?/, '').split('?')[0] ?? '')

export const route = computed(() => {
  const [page = '', ...rest] = path.value.split('/').map(decoded)
  return { page, rest }
})

/** What follows `?` in the address of the page. */
export const routeQuery = computed(() => hash.value.split('?')[1] ?? '')

/** The browser's history gets no further entry. */
export function setRouteQuery(query: string): void {
  history.replaceState(null, '', `#/${path.peek()}${query === '' ? '' : `?${query}`}`)
  follow()
}

/** The route by the address of the page. The address changes before the browser reports it, and a key may be pressed in between. */
export function currentRoute(): { readonly page: string; readonly rest: readonly string[] } {
  follow()
  return route.peek()
}

/** The node of a core whose view is shown: `?node=NAME`. Empty: none. */
export const nodeName = new URLSearchParams(location.search).get('node') ?? ''

export const serviceHref = (key: string): string => `#/service/${key.split('/').map(encodeURIComponent).join('/')}`
export const changeHref = (number: number): string => `#/changes/${number}`
export const nodeHref = (name: string): string => `?node=${encodeURIComponent(name)}#/`

export const goTo = (href: string): void => {
  location.hash = href
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
