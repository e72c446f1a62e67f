import { attributesIn, textOf } from '@kpng/linux'

// The expressions that a rule is made of, in netlink messages.

const EXPRESSION_NAME = 1
const EXPRESSION_DATA = 2

/** Whether expressions read from the kernel are these. The kernel adds attributes with its defaults. */
export function saysAllOf(told: Buffer, expressions: Buffer): boolean {
  const [kernels, ours] = [[...attributesIn(told)], [...attributesIn(expressions)]]
  return (
    kernels.length === ours.length &&
    ours.every(({ value }, index) => saysAllOfOne(kernels[index]?.value ?? Buffer.alloc(0), value))
  )
}

function saysAllOfOne(told: Buffer, expression: Buffer): boolean {
  const [kernels, ours] = [valuesIn(told), valuesIn(expression)]
  const [kernelData, ourData] = [kernels.get(EXPRESSION_DATA), ours.get(EXPRESSION_DATA)]
  if (nameIn(kernels) !== nameIn(ours) || !kernelData || !ourData) return false
  const said = valuesIn(kernelData)
  return [...valuesIn(ourData)].every(([type, value]) => said.get(type)?.equals(value))
}

const valuesIn = (bytes: Buffer): Map<number, Buffer> =>
  new Map([...attributesIn(bytes)].map(({ type, value }) => [type, value]))

const nameIn = (values: ReadonlyMap<number, Buffer>): string => textOf(values.get(EXPRESSION_NAME) ?? Buffer.alloc(0))
