import { silentLog } from '@kpng/api'
import { nftBackend } from '../backend.js'
import { options } from './cases.js'
import { serveAndChange } from './serve.js'

// Argument: the bit of the packet mark, since another bit is another version of the rules; or `cleanup`.

const [, , argument] = process.argv
const masqueradeBit = argument === 'cleanup' ? 14 : Number(argument)
const backend = nftBackend({ ...options, log: silentLog, masqueradeBit })
if (argument === 'cleanup') await backend.cleanup()
else await serveAndChange(backend, 1000)
