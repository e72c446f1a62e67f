export { type HttpHandler, type Listening, type ListenOptions, listen } from './listen.js'
export type { StatuszFacts } from './pages.js'
export { type StatusHandlerOptions, statusHandler } from './status-server.js'
export type { Verbosity } from './verbosity.js'
