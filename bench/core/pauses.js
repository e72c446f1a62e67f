// The longest pause of this process: its event loop is looked at every millisecond. Beside it, how much of a pause this thread worked: on a machine with other work a process
// also waits for a CPU, which says nothing about it.
import { readFileSync } from 'node:fs'

/** Milliseconds for which this thread ran, as the kernel counts them; undefined where it does not say. */
function ranMs() {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]) / 1e6
  } catch {
    return undefined
  }
}

/** Returns a function that says the longest pause since it was called last, and starts again. */
export function watchPauses() {
  let longest = { pauseMs: 0, ownMs: 0 }
  let [lookedAt, ran] = [performance.now(), ranMs()]
  const look = () => {
    const [now, ranNow] = [performance.now(), ranMs()]
    const pauseMs = now - lookedAt - 1
    const ownMs = ranNow === undefined ? pauseMs : Math.min(pauseMs, ranNow - ran)
    longest = { pauseMs: Math.max(longest.pauseMs, pauseMs), ownMs: Math.max(longest.ownMs, ownMs) }
    lookedAt = now
    ran = ranNow
  }
  setInterval(look, 1)
  return () => {
    look()
    const found = longest
    longest = { pauseMs: 0, ownMs: 0 }
    return found
  }
}
