import { open } from 'node:fs/promises'
import { KpngError, messageOf } from '@kpng/api'
import { type Context, type Flags, textFlag } from './context.js'
import { examine } from './doctor.js'

/** Writes the bundle, and says on standard output what is in it. */
export async function writeBundle(flags: Flags, agentSocket: string, context: Context): Promise<void> {
  const path = textFlag(flags, 'output') ?? ''
  const { makeBundle } = await import('@kpng/node/bundle')
  // Opened first: nobody wants to wait for everything to be read, and then hear that it cannot be written.
  const file = await open(path, 'w', 0o600).catch((error) => {
    throw new KpngError(
      'unavailable',
      `The bundle ${path} cannot be written: ${messageOf(error)}. Choose another file.`,
    )
  })
  try {
    const examined = await examine(flags, context).catch(messageOf)
    const { archive, files, missing } = await makeBundle({
      ...{ agentSocket, version: context.version, hashNames: Boolean(flags.hashNames) },
      metricsAddress: textFlag(flags, 'metricsAddress') ?? '127.0.0.1:10249',
      unit: textFlag(flags, 'unit') ?? 'kpng',
      report: typeof examined === 'string' ? examined : examined.report,
      knownNames: [context.nodeName, ...(typeof examined === 'string' ? [] : examined.names)],
    })
    await file.writeFile(archive)
    console.log(`Wrote ${path}: ${files.length} files, ${Math.ceil(archive.length / 1024)} KiB.`)
    for (const line of missing) console.log(`Not in it: ${line}`)
    console.log('Look through the files before you publish them.')
  } finally {
    await file.close()
  }
}
