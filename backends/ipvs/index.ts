export { ipvsBackend } from './backend.js'
export { type IpvsOptions, schedulerAnnotation, schedulers } from './options.js'
export { renderState } from './render.js'
