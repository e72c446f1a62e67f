import { computed, signal } from '@preact/signals'

// The page that is shown: `#/`, `#/service/<namespace>/<name>`, `#/changes[/<number>]`, `#/connections`, `#/nodes`.

const hash = signal(location.hash)
addEventListener('hashchange', () => {
  hash.value = location.hash
})

export const route = computed(() => {
  const [page = '', ...rest] = hash.value.replace(/^#\/?/, '').split('/').map(decoded)
  return { page, rest }
})

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
