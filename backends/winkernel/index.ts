export { winkernelBackend } from './backend.js'
export type { WinkernelOptions } from './options.js'
