import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Log, messageOf } from '@kpng/api'
import type { HttpHandler } from './listen.js'
import { flagzText, type StatuszFacts, statuszText } from './pages.js'
import { sendCpuProfile, sendHeapSnapshot } from './profiles.js'
import { sendJson, sendText } from './respond.js'
import { answerVerbosity, type Verbosity } from './verbosity.js'

export interface StatusHandlerOptions {
  /** What kube-proxy would call the mode: the answer to /proxyMode. Default: there is no such page. */
  readonly mode?: string
  /** A prom-client registry. */
  readonly registry: { metrics(): Promise<string>; readonly contentType: string }
  /** The answer to /configz: `configz(resolved)`. Default: there is no such page. */
  readonly configz?: () => object
  /** The answer to /flagz: `flagz(resolved)`. Default: there is no such page. */
  readonly flagz?: () => { readonly [flag: string]: string }
  readonly status: StatuszFacts
  readonly log: Log
  /** How the log's verbosity is read and set at run time. Default: it cannot be. */
  readonly verbosity?: Verbosity
  /** Whether CPU and heap profiles are served: kube-proxy's `enableProfiling`. Default false. */
  readonly profiling?: boolean
}

type Page = (request: IncomingMessage, response: ServerResponse, query: URLSearchParams) => void | Promise<void>

/** Answers on kube-proxy's port 10249: metrics, and what people look at to understand a proxy. */
export function statusHandler(options: StatusHandlerOptions): HttpHandler {
  const pages = pagesOf(options)
  return (request, response) => {
    // Not by URL, which throws at what some clients send.
    const [path = '', query = ''] = (request.url ?? '').split('?')
    const page = pages[path]
    if (!page) return sendText(response, 404, '404 page not found\n')
    Promise.resolve(page(request, response, new URLSearchParams(query))).catch((error) => {
      options.log.warn('A page could not be served', { path, error: messageOf(error) })
      if (response.headersSent) response.destroy()
      else sendText(response, 500, `${messageOf(error)}\n`)
    })
  }
}

function pagesOf(options: StatusHandlerOptions): { readonly [path: string]: Page | undefined } {
  const { mode, registry, configz, flagz, status, verbosity, profiling = false } = options
  const pages: { [path: string]: Page } = {
    '/healthz': (_, response) => sendText(response, 200, 'ok'),
    '/metrics': async (_, response) => {
      const text = await registry.metrics()
      response.writeHead(200, { 'Content-Type': registry.contentType }).end(text)
    },
  }
  if (mode !== undefined) pages['/proxyMode'] = (_, response) => sendText(response, 200, mode)
  if (configz) pages['/configz'] = (_, response) => sendJson(response, 200, configz())
  if (flagz) pages['/flagz'] = (_, response) => sendText(response, 200, flagzText(flagz()))
  const listed = [...Object.keys(pages), '/statusz'].sort()
  pages['/statusz'] = (_, response) => sendText(response, 200, statuszText(status, listed))
  if (verbosity) {
    pages['/debug/flags/v'] = (request, response) => answerVerbosity(request, response, verbosity, profiling)
  }
  const profilingOff: Page = (_, response) =>
    sendText(response, 403, 'Profiling is off. Set enableProfiling, or start with --profiling.\n')
  pages['/debug/profile'] = profiling ? sendCpuProfile : profilingOff
  pages['/debug/heap'] = profiling ? sendHeapSnapshot : profilingOff
  // No inherited names, such as /constructor.
  return Object.assign(Object.create(null), pages)
}
