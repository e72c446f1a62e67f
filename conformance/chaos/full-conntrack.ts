import { readFile, writeFile } from 'node:fs/promises'
import { changeAWhile, type Fault } from './faults.js'

const limitFile = '/proc/sys/net/netfilter/nf_conntrack_max'

/**
 * No new connection fits into the table of connection tracking. The limit belongs to the whole machine, and a network namespace cannot
 * have its own, so this is only for a machine that nobody else uses.
 */
export const fullConntrack: Fault = {
  name: 'the table of connection tracking is full',
  async happen(scene) {
    const changes = scene.random.between(4, 8)
    const usual = await readFile(limitFile, 'utf8')
    scene.traffic.excuse('no new connection fits into the table')
    // 0 would mean no limit.
    await writeFile(limitFile, '1')
    try {
      await changeAWhile(scene, changes, 1000)
    } finally {
      await writeFile(limitFile, usual)
    }
  },
}
