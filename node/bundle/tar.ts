/** A file of an archive. */
export interface ArchivedFile {
  /** Its path in the archive: at most 100 bytes, without a slash at the start. */
  readonly path: string
  readonly text: string
}

const blockBytes = 512

/** An archive in the ustar format, which every tar reads. All files belong to root and only the owner may read them. */
export function tarOf(files: readonly ArchivedFile[], modifiedAtMs: number): Buffer {
  const parts: Buffer[] = []
  for (const { path, text } of files) {
    const content = Buffer.from(text)
    parts.push(headerOf(path, content.length, modifiedAtMs), content, padding(content.length))
  }
  // Two empty blocks end an archive.
  return Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)])
}

function headerOf(path: string, bytes: number, modifiedAtMs: number): Buffer {
  if (Buffer.byteLength(path) > 100) throw new RangeError(`The path ${path} is too long for an archive.`)
  const header = Buffer.alloc(blockBytes)
  const octal = (value: number, length: number) => `${value.toString(8).padStart(length - 1, '0')}\0`
  header.write(path, 0)
  header.write(octal(0o600, 8), 100)
  header.write(octal(0, 8), 108)
  header.write(octal(0, 8), 116)
  header.write(octal(bytes, 12), 124)
  header.write(octal(Math.floor(modifiedAtMs / 1000), 12), 136)
  header.write('0', 156)
  header.write('ustar\x0000', 257)
  header.write('root', 265)
  header.write('root', 297)
  // The checksum counts its own field as blanks.
  header.write(' '.repeat(8), 148)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}

const padding = (bytes: number): Buffer => Buffer.alloc((blockBytes - (bytes % blockBytes)) % blockBytes)
