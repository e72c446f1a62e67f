export * from '../lab/index.js'
export { enterNamespace, enterNewNamespace } from './namespace.js'
