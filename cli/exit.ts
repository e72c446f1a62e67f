import type { Log } from '@kpng/api'

/** Before whoever asked it to stop loses patience: the kubelet and systemd wait ten seconds. */
const stopWithinMs = 8000

/** A run that hangs when it should stop (a child that does not end, a disk that does not answer) must not keep the process. */
export function exitInTime(signal: AbortSignal, log: Log): void {
  const exit = () => {
    log.error('It did not stop in time, and is ended', { afterMs: stopWithinMs })
    process.exit(1)
  }
  signal.addEventListener('abort', () => setTimeout(exit, stopWithinMs).unref(), { once: true })
}

// A reader that has seen enough (`kpng-json | head`) is no failure: what it was written for is done.
let whenUnread = () => process.exit(0)

/** What to do instead when nobody reads standard output any more: commands that have something to clean up or to judge. */
export function onUnreadOutput(act: () => void): void {
  whenUnread = act as () => never
}

/** Pipes that are closed at the other end must not end the process in the middle of things. */
export function surviveClosedPipes(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) =>
    error.code === 'EPIPE' ? whenUnread() : process.exit(1),
  )
  // A proxy is not its log: it goes on, unheard.
  process.stderr.on('error', () => {})
}
