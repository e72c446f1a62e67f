import { runAgent } from './methods.js'

// Usage: main.js <name>

runAgent(process.argv[2])
