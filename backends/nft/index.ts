export { nftBackend } from './backend.js'
export type { NftOptions } from './options.js'
export { renderRuleset } from './render.js'
