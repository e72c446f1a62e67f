// Flags of the benchmarks. A mistake is answered with a sentence and exit code 2.
import { parseArgs } from 'node:util'

export function fail(sentence) {
  console.error(sentence)
  process.exit(2)
}

/** The values of flags, and those with a number as default as numbers. */
export function parsedArgs(options) {
  let values
  try {
    values = parseArgs({ options }).values
  } catch (error) {
    const flags = Object.keys(options).map((name) => `--${name}`)
    fail(`${error.message.split('. ')[0]}. The flags are: ${flags.join(', ')}.`)
  }
  const numbers = {}
  for (const [name, { default: usual }] of Object.entries(options)) {
    if (!/^\d+$/.test(usual ?? '')) continue
    numbers[name] = Number(values[name])
    if (!Number.isInteger(numbers[name]) || numbers[name] < 1)
      fail(`--${name} is "${values[name]}": give a whole number above 0.`)
  }
  return { values, numbers }
}
