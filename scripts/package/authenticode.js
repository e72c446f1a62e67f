// Windows programs carry their signature at the end, and a header that says where. Node's would no longer be right once
// kpng is inside it, and a wrong signature is worse than none: scanners stop it. Sign the result with your own key.

const securityEntry = 4

/** `program` without its Authenticode signature. */
export function withoutSignature(program) {
  const header = program.readUInt32LE(0x3c)
  if (program.toString('latin1', header, header + 4) !== 'PE\0\0') throw new Error('This is no Windows program.')
  const optional = header + 24
  const directories = optional + (program.readUInt16LE(optional) === 0x20b ? 112 : 96)
  const entry = directories + securityEntry * 8
  const offset = program.readUInt32LE(entry)
  if (offset === 0) return program
  const result = Buffer.from(program.subarray(0, offset))
  result.writeBigUInt64LE(0n, entry)
  // The check sum covers the whole file; 0 means that there is none, and only drivers need one.
  result.writeUInt32LE(0, optional + 64)
  return result
}
