import { given, textFlag } from '../context.js'
import type { BackendCommand } from './backend.js'

export const calloutCommand: BackendCommand = {
  name: 'to-callout',
  summary: 'run a program on each change, with one JSON line per Service on its standard input',
  examples: ['--program ./my-script', '--once'],
  addFlags: (command) =>
    command.option('--program <path>', 'the program (default: CALLOUT of the environment, else /bin/cat)'),
  create: async (flags) => {
    const { calloutBackend } = await import('@kpng/backend-callout')
    return calloutBackend({ ...given('program', textFlag(flags, 'program')) })
  },
}
