/** A span and those inside it, as plain data. Unix times in milliseconds. */
export interface SpanTree {
  readonly name: string
  readonly startMs: number
  readonly endMs: number
  readonly attributes?: Readonly<Record<string, string | number | boolean | string[]>>
  readonly error?: string
  readonly children?: readonly SpanTree[]
}
