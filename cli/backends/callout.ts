import { given, textFlag } from '../context.js'
import type { BackendCommand } from './backend.js'

export const calloutCommand: BackendCommand = {
  name: 'to-callout',
  summary: 'run a program with the JSON lines on its standard input, on each change',
  addFlags: (command) =>
    command.option('--program <path>', 'the program; default: CALLOUT of the environment, else /bin/cat'),
  create: async (flags) => {
    const { calloutBackend } = await import('@kpng/backend-callout')
    return calloutBackend({ ...given('program', textFlag(flags, 'program')) })
  },
}
