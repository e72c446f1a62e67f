import { textFlag } from '../context.js'
import { checkOutputFile } from '../files.js'
import type { SinkCommand } from './sink.js'

export const recordSink: SinkCommand = {
  name: 'to-record',
  summary: 'record the state and every change of it in a file, which the replay source plays again',
  examples: ['-o incident.kpng', '-o /tmp/incident.kpng -v 2'],
  addFlags: (command) => command.option('-o, --output <path>', 'the file; an old one is replaced', 'kpng-record.jsonl'),
  run: async (flags, store, { log, signal }) => {
    const { recordChanges } = await import('@kpng/core/sinks/record')
    const path = textFlag(flags, 'output') ?? 'kpng-record.jsonl'
    await checkOutputFile('--output', path)
    log.info('Recording', { path })
    await recordChanges({ store, path, log, signal })
  },
}
