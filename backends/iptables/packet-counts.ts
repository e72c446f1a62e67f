import { type Log, messageOf } from '@kpng/api'
import { deletePacketCounter, makePacketCounter, readPacketCounter } from '@kpng/linux'

// Packets that kube-proxy's iptables mode counts for its metrics, in counters of the same names. The rules match by name (nfacct).

const invalid = 'ct_state_invalid_dropped_pkts'
const localhost = 'localhost_nps_accepted_pkts'

/** Matches that count packets. */
export const countInvalid = `-m nfacct --nfacct-name ${invalid}`
export const countLocalhost = `-m nfacct --nfacct-name ${localhost}`

/** Whether packets can be counted here. */
export async function makeCounters(log: Log): Promise<boolean> {
  try {
    for (const name of [invalid, localhost]) await makePacketCounter(name)
    return true
  } catch (error) {
    log.info('Dropped invalid packets and node ports on loopback addresses are not counted', {
      error: messageOf(error),
    })
    return false
  }
}

/** As `Observations.packets`. A counter that is not there counts nothing. */
export const readCounts = async () => ({
  invalidDropped: (await readPacketCounter(invalid).catch(() => 0)) ?? 0,
  localhostNodePortsAccepted: (await readPacketCounter(localhost).catch(() => 0)) ?? 0,
})

/** Those that rules use, such as kube-proxy's, stay. */
export async function deleteCounters(): Promise<void> {
  for (const name of [invalid, localhost]) await deletePacketCounter(name).catch(() => {})
}
