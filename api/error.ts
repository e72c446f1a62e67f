/**
 * The one error class of kpng. `message` is a sentence that names the object and says what to do next; `code` is stable and
 * may be matched by programs.
 */
export class KpngError extends Error {
  readonly code: KpngErrorCode

  constructor(code: KpngErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'KpngError'
    this.code = code
  }
}

export type KpngErrorCode =
  /** The command line, or an option of the library, is wrong. */
  | 'usage'
  /** Something that was given to kpng (a file, an object, a message) cannot be understood. */
  | 'invalid'
  /** A required file or address is missing, or must not be used. */
  | 'unavailable'
  /** The other side answered and refused the request. */
  | 'refused'
  /** The machine lacks something that is needed. */
  | 'unsupported'

/** The message of an error of any type. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

const fileAdvices: Readonly<Record<string, string>> = {
  EACCES: 'Check its permissions.',
  EPERM: 'Check its permissions.',
  EMFILE:
    'This process has no file descriptors left. Raise its limit of open files (systemd: LimitNOFILE, shell: ulimit -n).',
  ENFILE: 'This machine has no file descriptors left. Raise fs.file-max.',
  ENOSPC: 'The disk is full. Free some space.',
}

/** What to do when a file or folder cannot be used; empty if the error says it all. */
export const fileAdvice = (error: unknown): string => fileAdvices[(error as { code?: string }).code ?? ''] ?? ''
