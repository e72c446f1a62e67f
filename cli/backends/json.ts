import type { BackendCommand } from './backend.js'

export const jsonCommand: BackendCommand = {
  name: 'to-json',
  summary: 'print it as JSON: one line a service, all services on each change',
  addFlags: () => {},
  create: async () => {
    const { jsonBackend } = await import('@kpng/backend-json')
    return jsonBackend(
      (text) =>
        new Promise((resolve, reject) => process.stdout.write(text, (error) => (error ? reject(error) : resolve()))),
    )
  },
}
