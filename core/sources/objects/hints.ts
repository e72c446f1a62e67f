import { type Hints, none } from '../../store/index.js'
import { fieldsOf, listOf, type Report, textOf } from './fields.js'

/** Reads the hints of the endpoints of one slice. Equal hints become one object: a slice has few different ones. */
export function hintsReader(
  report: Report,
  intern: (text: string) => string,
): (value: unknown, index: number) => Hints | undefined {
  const known = new Map<string, Hints>()

  const namesIn = (value: unknown, index: number, field: string): readonly string[] => {
    const items = listOf(value, report, 'endpoints', index, 'hints', field)
    if (items.length === 0) return none
    const names = items.map((item, at) => {
      const { name } = fieldsOf(item, report, 'endpoints', index, 'hints', field, at)
      return textOf(name, report, 'endpoints', index, 'hints', field, at, 'name')
    })
    return [...new Set(names.filter((name) => name !== ''))].sort().map(intern)
  }

  return (value, index) => {
    if (value === undefined || value === null) return undefined
    const fields = fieldsOf(value, report, 'endpoints', index, 'hints')
    const zones = namesIn(fields.forZones, index, 'forZones')
    const nodes = namesIn(fields.forNodes, index, 'forNodes')
    if (zones.length + nodes.length === 0) return undefined
    const key = JSON.stringify([zones, nodes])
    let hints = known.get(key)
    if (!hints) {
      hints = Object.freeze({ zones: Object.freeze(zones), nodes: Object.freeze(nodes) })
      known.set(key, hints)
    }
    return hints
  }
}
