/** The three wire forms of protobuf that an object needs: a length-delimited message or text, and `true`. */
function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  while (rest > 0x7f) {
    bytes.push((rest & 0x7f) | 0x80)
    rest = Math.floor(rest / 128)
  }
  bytes.push(rest)
  return Buffer.from(bytes)
}

const delimited = (field: number, content: Buffer): Buffer =>
  Buffer.concat([varint(field * 8 + 2), varint(content.length), content])

export const message = (field: number, ...content: Buffer[]): Buffer => delimited(field, Buffer.concat(content))
export const text = (field: number, value: string): Buffer => delimited(field, Buffer.from(value, 'utf8'))
export const truth = (field: number): Buffer => Buffer.concat([varint(field * 8), Buffer.from([1])])
