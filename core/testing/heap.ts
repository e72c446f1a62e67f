import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Megabytes that are really in use: garbage is collected first. */
export function heapMb(): number {
  collect()
  return process.memoryUsage().heapUsed / 1e6
}
