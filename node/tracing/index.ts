export type { ConnectionTrace } from './connection-spans.js'
export { startTracing, type Tracing, type TracingOptions } from './tracing.js'
