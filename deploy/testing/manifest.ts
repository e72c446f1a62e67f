/** An object of a manifest, as far as every kind has it. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels?: Record<string, string> }
}

export const nameOf = ({ kind, metadata }: Manifest): string => `${kind} ${metadata?.name}`
