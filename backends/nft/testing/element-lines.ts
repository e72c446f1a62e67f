import { type Elements, elementLines as linesOf } from '@kpng/linux/nftables'
import { settingsOf } from '../options.js'
import { nftRuleset } from '../rules/skeleton.js'

const everySet = nftRuleset(settingsOf({ counters: true }))

/** Elements one per line, in a fixed order. */
export const elementLines = (elements: Elements): string[] => linesOf(everySet, elements)
