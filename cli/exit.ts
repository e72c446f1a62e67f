import type { Log } from '@kpng/api'

/** Less than the ten seconds that the kubelet and systemd may wait. */
const stopWithinMs = 8000

/** Ends the process if the run hangs while it stops: a child that does not end, a disk that does not answer. */
export function exitInTime(signal: AbortSignal, log: Log): void {
  const exit = () => {
    log.error('kpng did not stop in time and exits now', { afterMs: stopWithinMs })
    process.exit(1)
  }
  signal.addEventListener('abort', () => setTimeout(exit, stopWithinMs).unref(), { once: true })
}

// A reader that stops reading (`kpng-json | head`) is not a failure.
let whenUnread = () => process.exit(0)

/** What to do when nobody reads standard output any more, for commands that must clean up. */
export function onUnreadOutput(act: () => void): void {
  whenUnread = act as () => never
}

/** A pipe that is closed at the other end must not kill the process. */
export function surviveClosedPipes(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) =>
    error.code === 'EPIPE' ? whenUnread() : process.exit(1),
  )
  // A broken log pipe must not stop the proxy.
  process.stderr.on('error', () => {})
}
