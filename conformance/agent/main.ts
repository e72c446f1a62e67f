import { runAgent } from './run.js'

// Usage: main.js <name> <router|gateway|host>

const [name, role] = process.argv.slice(2)
runAgent(name, role)
