export { ebpfBackend } from './backend.js'
export { pinFolders, removePins } from './kernel/removal.js'
export type { EbpfOptions } from './options.js'
