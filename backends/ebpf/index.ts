export { ebpfBackend } from './backend.js'
export type { EbpfOptions } from './options.js'
