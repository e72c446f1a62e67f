import { KpngError } from '@kpng/api'

/** The server's URL without a slash at its end. As kubectl does, `host:port` alone is taken for http. */
export function checkServer(server: string, field: string): string {
  const text = server.trim()
  if (text === '') {
    throw new KpngError(
      'invalid',
      `The ${field} is empty. Set it to the URL of the API server, like https://10.0.0.1:6443.`,
    )
  }
  const url = parseUrl(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`)
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.hostname === '') {
    throw new KpngError('invalid', `The ${field} is not an http or https URL. Write it like https://10.0.0.1:6443.`)
  }
  if (url.username || url.password || url.search || url.hash) {
    throw new KpngError(
      'invalid',
      `The ${field} must not carry a user, a query or a fragment. Write it like https://host:port.`,
    )
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

/** A proxy's URL, or an error that says which proxies can be used. */
export function checkProxyUrl(proxyUrl: string, field: string): URL {
  const url = parseUrl(proxyUrl)
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url
  if (url?.protocol.startsWith('socks')) {
    throw new KpngError(
      'unsupported',
      `The ${field} is a SOCKS proxy, which kpng cannot use. Give an http or https proxy, or reach the server directly.`,
    )
  }
  throw new KpngError(
    'invalid',
    `The ${field} is not a URL of an http or https proxy. Write it like http://proxy:3128.`,
  )
}

function parseUrl(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}
