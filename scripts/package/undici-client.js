// Stands in for undici in a bundle: only what kpng uses of it. Its index also loads fetch, cookies, caches and mocks, and with them Node's
// own copy of undici, which takes a tenth of the time to start.
import api from '../../node_modules/undici/lib/api/index.js'
import Agent from '../../node_modules/undici/lib/dispatcher/agent.js'
import Dispatcher from '../../node_modules/undici/lib/dispatcher/dispatcher.js'

Object.assign(Dispatcher.prototype, api)

/** As in undici, for a URL that is valid and a dispatcher that is given. */
export function request(url, { dispatcher, ...options }) {
  const { origin, pathname, search } = new URL(url)
  return dispatcher.request({ method: 'GET', ...options, origin, path: `${pathname}${search}` })
}

/** Loaded when it is first needed: few clusters are behind a proxy. */
export function ProxyAgent(options) {
  const RealProxyAgent = require('../../node_modules/undici/lib/dispatcher/proxy-agent.js')
  return new RealProxyAgent(options)
}

export { Agent }
