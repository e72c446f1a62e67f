import { KpngError } from '@kpng/api'
import { textFlag } from '../context.js'
import type { SinkCommand } from './sink.js'

export const fileSink: SinkCommand = {
  name: 'to-file',
  summary: 'write the whole state to a file, which the file source can read',
  examples: ['-o global-state.yaml', '-o -'],
  addFlags: (command) => command.option('-o, --output <path>', 'the file; - is standard output', 'global-state.yaml'),
  run: async (flags, store, { log, signal }) => {
    const { writeStateFile } = await import('@kpng/core/sinks/file')
    const path = textFlag(flags, 'output')
    if (path === undefined) throw new KpngError('usage', '--output needs the path of a file.')
    await writeStateFile({ store, path, log, signal })
  },
}
