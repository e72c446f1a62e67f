import type { Readable } from 'node:stream'
import type { KubeRequest } from './connection.js'

/** One request to the API server, as it went. A request that is sent again with other credentials is two. */
export interface RequestReport {
  readonly method: string
  /** The server's host and port. */
  readonly host: string
  /** Undefined: there was no answer. */
  readonly status: number | undefined
  /** Until the answer was read, or given up; of a watch, which is meant to last, until it began. */
  readonly durationMs: number
}

export type OnRequest = (report: RequestReport) => void

/** Times a request from now on. One of the two is to be called, once. */
export function timed({ method = 'GET', query }: KubeRequest, server: string, onRequest: OnRequest) {
  const startedMs = performance.now()
  const done = (status: number | undefined) =>
    onRequest({ method, host: new URL(server).host, status, durationMs: performance.now() - startedMs })
  return {
    failed: () => done(undefined),
    answered: (status: number, body: Readable) => {
      if (query?.watch !== undefined) done(status)
      else body.once('close', () => done(status))
    },
  }
}
