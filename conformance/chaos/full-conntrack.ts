import { readFile, writeFile } from 'node:fs/promises'
import { KpngError } from '@kpng/api'
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
    const { mainPid = 'self' } = scene.proxiers
    const usual = await readFile(limitFile, 'utf8')
    const droppedBefore = await droppedPackets(mainPid)
    scene.traffic.excuse('no new connection fits into the table')
    // 0 would mean no limit.
    await writeFile(limitFile, '1')
    try {
      await changeAWhile(scene, changes, 1000)
    } finally {
      await writeFile(limitFile, usual)
    }
    if ((await droppedPackets(mainPid)) === droppedBefore) {
      const sentence = `With ${limitFile} at 1, no packet was dropped: the table was not full, so nothing was tried.`
      throw new KpngError('unavailable', `${sentence} Check that the kernel counts in /proc/net/stat/nf_conntrack.`)
    }
  },
}

/** How many packets found no place in the table so far, in the network namespace of a process. */
async function droppedPackets(pid: number | 'self'): Promise<number> {
  const [names = [], ...processors] = (await readFile(`/proc/${pid}/net/stat/nf_conntrack`, 'utf8'))
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
  const column = names.indexOf('drop')
  return processors.reduce((sum, counts) => sum + Number.parseInt(counts[column] ?? '0', 16), 0)
}
