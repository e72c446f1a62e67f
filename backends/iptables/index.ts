export { iptablesBackend } from './backend.js'
export type { Flavour } from './flavour.js'
export type { IptablesOptions } from './options.js'
export { renderRules } from './render.js'
