export { diagnose, type RoutedWay, reasonWords, routed, usedIps } from './diagnose.js'
export { type Facts, type SelectionFacts, selectionOf, type Way, waysOf } from './facts.js'
export { byLevel, type Code, catalogue, counted, found, needsAction } from './findings.js'
