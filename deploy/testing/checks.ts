/** Says what is wrong with a value: sentences that begin with its path; none when it is right. */
export type Check = (value: unknown, path: string) => string[]

const kindOf = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'a list' : typeof value)

const is =
  (type: string): Check =>
  (value, path) =>
    kindOf(value) === type ? [] : [`${path} is ${kindOf(value)}, not ${type}`]

export const text = is('string')
export const flag = is('boolean')
export const whole: Check = (value, path) => (Number.isInteger(value) ? [] : [`${path} is no whole number`])

/** An amount, such as 1Gi or 100m. YAML makes numbers of some. */
export const quantity: Check = (value, path) =>
  /^\d+(\.\d+)?(m|k|Ki|M|Mi|G|Gi)?$/.test(`${value}`) ? [] : [`${path}: ${value} is no quantity`]

/** A number, or a share such as 10%. */
export const count: Check = (value, path) =>
  Number.isInteger(value) || /^\d+%$/.test(`${value}`) ? [] : [`${path}: ${value} is neither a number nor a share`]

export const port: Check = (value, path) =>
  Number.isInteger(value) && Number(value) > 0 && Number(value) < 65536 ? [] : [`${path}: ${value} is no port`]

/** A port's number, or the name that a container gives it. */
export const portOrName: Check = (value, path) => (typeof value === 'string' ? [] : port(value, path))

export const duration: Check = (value, path) =>
  /^(\d+(ms|s|m|h))+$/.test(`${value}`) ? [] : [`${path}: ${value} is no duration`]

export const oneOf =
  (...allowed: string[]): Check =>
  (value, path) =>
    allowed.includes(`${value}`) ? [] : [`${path}: ${value} is none of ${allowed.join(', ')}`]

export const list =
  (item: Check): Check =>
  (value, path) =>
    Array.isArray(value)
      ? value.flatMap((element, index) => item(element, `${path}[${index}]`))
      : [`${path} is ${kindOf(value)}, not a list`]

export const map =
  (item: Check): Check =>
  (value, path) =>
    kindOf(value) === 'object'
      ? Object.entries(value as object).flatMap(([key, element]) => item(element, `${path}.${key}`))
      : [`${path} is ${kindOf(value)}, not an object`]

/** Fields of an object. Those that end in ! have to be there; any other name than these is refused. */
export const object = (fields: Record<string, Check>): Check => {
  const known = new Map(Object.entries(fields).map(([name, check]) => [name.replace('!', ''), check]))
  const needed = Object.keys(fields)
    .filter((name) => name.endsWith('!'))
    .map((name) => name.slice(0, -1))
  return (value, path) => {
    if (kindOf(value) !== 'object') return [`${path} is ${kindOf(value)}, not an object`]
    const entries = Object.entries(value as object)
    return [
      ...needed.filter((name) => !(name in (value as object))).map((name) => `${path}.${name} is missing`),
      ...entries.flatMap(
        ([name, field]) => known.get(name)?.(field, `${path}.${name}`) ?? [`${path}.${name} is unknown`],
      ),
    ]
  }
}
