export { nftBackend } from './backend.js'
export type { DetectLocal, NftOptions } from './options.js'
export { renderRuleset } from './render.js'
