import { KpngError } from '@kpng/api'
import { given, textFlag } from '../context.js'
import type { SourceCommand } from './source.js'

export const replaySource: SourceCommand = {
  name: 'replay',
  summary: 'play a record that to-record made, at its own pace or faster',
  example: 'kpng replay -i incident.kpng --speed 10',
  addFlags: (command) =>
    command
      .option('-i, --input <path>', 'the record', 'kpng-record.jsonl')
      .option('--speed <factor>', 'how many times faster than it was recorded; 0: without pauses', '1')
      .option('--until <duration>', 'stop so long after the start of the record, such as 90s (default: at its end)'),
  start: async (flags, state, { log, signal }) => {
    const { replay } = await import('@kpng/core/sources/replay')
    const { milliseconds } = await import('@kpng/client')
    const speed = Number(textFlag(flags, 'speed') ?? '1')
    if (!(speed >= 0))
      throw new KpngError('usage', `--speed takes a number from 0 (without pauses), not "${flags.speed}".`)
    const until = textFlag(flags, 'until')
    const path = textFlag(flags, 'input') ?? 'kpng-record.jsonl'
    const ended = replay({
      ...{ ...state, path, log, signal },
      speed: speed === 0 ? Number.POSITIVE_INFINITY : speed,
      ...given('untilMs', until === undefined ? undefined : milliseconds('--until', until)),
    })
    return { ended }
  },
}
