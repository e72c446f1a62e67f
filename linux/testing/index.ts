export * from '../lab/index.js'
export { enterNamespace, enterNewNamespace } from './namespace.js'
export { heldOfBoth } from './rulesets.js'
