export {
  addDifference,
  addressBytes,
  addressText,
  countElements,
  difference,
  type ElementMap,
  type Elements,
  emptyTransaction,
  mapAt,
  markBytes,
  markOf,
  mergeRanges,
  operationCount,
  portAlone,
  portBytes,
  portOf,
  protocolBytes,
  put,
  rangeOf,
  type SetPath,
  setPath,
  slotBytes,
  slotOf,
  splitSetPath,
  type Transaction,
} from './element.js'
export {
  addressBytesIn,
  familyOfTable,
  protocolNumbers,
  protocols,
  type TableFamily,
  tableFamilies,
  tableFamily,
} from './family.js'
export * from './field.js'
export { checkRuleset, usableFamilies } from './requirements.js'
export { type Chain, chainOf, gotoVerdict, type Hook, type Ruleset, rulesetVersion } from './ruleset.js'
export type { FieldKind, SetShape } from './set.js'
export { readNftGeneration } from './socket.js'
export { allowedElements, allowedSets, sourceRules } from './source-ranges.js'
export * from './statement.js'
export { listTables, removeTables } from './table-list.js'
export type { TableAt } from './table-messages.js'
export { type Around, type Found, shapeAt, Tables, type TimedElements } from './tables.js'
export { elementLines, rulesetText, tableText } from './text.js'
