export { startTracing, type Tracing, type TracingOptions } from './tracing.js'
