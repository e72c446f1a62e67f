/** What stops a run. The message is a sentence that names the thing and says what to do next; `code` is stable. */
export class ConformanceError extends Error {
  readonly code: ConformanceErrorCode

  constructor(code: ConformanceErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'ConformanceError'
    this.code = code
  }
}

export type ConformanceErrorCode =
  /** An option is wrong. */
  | 'usage'
  /** The machine lacks something that the lab needs. */
  | 'unsupported'
  /** A program that the run depends on failed: ip, kubectl, an agent, the proxy under test. */
  | 'failed'
  /** The run was stopped from outside. */
  | 'interrupted'

/** The sentence in an error of any kind. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
