import type { BackendCommand } from './backend.js'

export const jsonCommand: BackendCommand = {
  name: 'to-json',
  summary: 'print all Services on each change, one JSON line per Service',
  examples: ['', '--once'],
  addFlags: () => {},
  create: async () => {
    const { jsonBackend } = await import('@kpng/backend-json')
    return jsonBackend(
      (text) =>
        new Promise((resolve, reject) => process.stdout.write(text, (error) => (error ? reject(error) : resolve()))),
    )
  },
}
