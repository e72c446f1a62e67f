import type { ServiceEndpoints } from './backend.js'
import type { ChangeSet } from './change-set.js'
import { changeSetsOverGrpc } from './grpc/change-sets.js'
import { servicesInOrder } from './json-lines.js'
import { textLog } from './log.js'
import { type ClientOptions, defaultNodeName, optionsFromArguments } from './options.js'
import { runBackend } from './runner.js'
import { stopOnSignals } from './stop.js'

export interface RunOptions extends ClientOptions {
  /** Return after the first call of the handler. Default: run until stopped. */
  readonly once?: boolean
}

/**
 * Calls the handler with all services and their endpoints on this node, once the state is complete and then after each
 * change. An error of the handler is logged, and the handler is called again after a while.
 *
 * Without options they are taken from the command line of your program: `--api`, `--node-name`, `--tls-key`, `--tls-crt`,
 * `--tls-ca`, `--error-delay`, `--max-msg-size`, `--once`, `-v`.
 */
export async function run(
  handler: (items: readonly ServiceEndpoints[]) => void | Promise<void>,
  options: RunOptions = optionsFromArguments(),
): Promise<void> {
  const log = options.log ?? textLog()
  const stopped = options.signal ?? stopOnSignals(log)
  const done = new AbortController()
  const signal = AbortSignal.any([stopped, done.signal])
  const nodeName = options.nodeName ?? defaultNodeName()
  await runBackend(
    {
      setup: async () => {},
      sync: async (view) => {
        await handler(servicesInOrder(view))
        if (options.once) done.abort()
      },
      cleanup: async () => {},
      close: async () => {},
    },
    { changeSets: changeSetsOverGrpc({ ...options, log }), nodeName, log, signal },
  )
}

/**
 * The change sets of this node, for programs that keep their own state. Asking for the next one says that the last one is
 * done; what changes in between arrives together. The first one is a reset. After a lost connection the next one says what changed meanwhile;
 * it is a reset only if the server cannot tell that.
 */
export function watch(options: ClientOptions = optionsFromArguments()): AsyncIterable<ChangeSet> {
  const log = options.log ?? textLog()
  const signal = options.signal ?? stopOnSignals(log)
  return changeSetsOverGrpc({ ...options, log })({ nodeName: options.nodeName ?? defaultNodeName() }, signal)
}
