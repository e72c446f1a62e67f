export { nftBackend } from './backend.js'
export { whyUnusable } from './kernel/requirements.js'
export type { NftOptions } from './options.js'
export { renderRuleset } from './render.js'
