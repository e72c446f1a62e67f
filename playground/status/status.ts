import { KpngError } from '@kpng/api'

/** One thing that is wrong with an object, as `details.causes` of a Status carries it. */
export interface Cause {
  reason: string
  message: string
  field: string
}

interface StatusDetails {
  name?: string
  group?: string
  kind?: string
  uid?: string
  causes?: Cause[]
  retryAfterSeconds?: number
}

export interface Status {
  kind: 'Status'
  apiVersion: 'v1'
  metadata: Record<string, unknown>
  status: 'Failure' | 'Success'
  message?: string
  reason?: string
  details?: StatusDetails
  code?: number
}

/** A refusal that goes to the client as a `Status` object. */
export class StatusError extends KpngError {
  readonly status: Status

  constructor(httpCode: number, reason: string, message: string, details?: StatusDetails) {
    super(httpCode === 422 || httpCode === 400 ? 'invalid' : 'refused', message)
    this.name = 'StatusError'
    this.status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code: httpCode }
    if (details) this.status.details = details
  }
}

/** What messages need to know of a kind: `services`, `endpointslices.discovery.k8s.io`. */
export interface ResourceName {
  group: string
  plural: string
  kind: string
}

const qualified = ({ group, plural }: ResourceName): string => (group === '' ? plural : `${plural}.${group}`)
const detailsOf = (resource: ResourceName, name: string): StatusDetails => ({
  ...(name === '' ? {} : { name }),
  ...(resource.group === '' ? {} : { group: resource.group }),
  kind: resource.plural,
})

export const notFound = (resource: ResourceName, name: string): StatusError =>
  new StatusError(404, 'NotFound', `${qualified(resource)} "${name}" not found`, detailsOf(resource, name))

export const alreadyExists = (resource: ResourceName, name: string): StatusError =>
  new StatusError(409, 'AlreadyExists', `${qualified(resource)} "${name}" already exists`, detailsOf(resource, name))

export const conflict = (resource: ResourceName, name: string, why: string, causes?: Cause[]): StatusError =>
  new StatusError(409, 'Conflict', `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`, {
    ...detailsOf(resource, name),
    ...(causes ? { causes } : {}),
  })

export const modified = (resource: ResourceName, name: string): StatusError =>
  conflict(
    resource,
    name,
    'the object has been modified; please apply your changes to the latest version and try again',
  )

export const forbidden = (resource: ResourceName, name: string, why: string, causes?: Cause[]): StatusError => {
  const subject = name === '' ? qualified(resource) : `${qualified(resource)} "${name}"`
  const details = { ...detailsOf(resource, name), ...(causes ? { causes } : {}) }
  return new StatusError(403, 'Forbidden', `${subject} is forbidden: ${why}`, details)
}

export const badRequest = (message: string): StatusError => new StatusError(400, 'BadRequest', message)

export const expired = (message: string): StatusError => new StatusError(410, 'Expired', message)

export const unauthorized = (): StatusError => new StatusError(401, 'Unauthorized', 'Unauthorized')

export const methodNotAllowed = (): StatusError =>
  new StatusError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource')

export const unknownResource = (): StatusError =>
  new StatusError(404, 'NotFound', 'the server could not find the requested resource')

export const unsupportedMediaType = (accepted: readonly string[]): StatusError =>
  new StatusError(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  )

export const notAcceptable = (accepted: readonly string[]): StatusError =>
  new StatusError(406, 'NotAcceptable', `only the following media types are accepted: ${accepted.join(', ')}`)

export const tooLargeResourceVersion = (asked: number, current: number): StatusError =>
  new StatusError(504, 'Timeout', `Timeout: Too large resource version: ${asked}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version', field: '' }],
    retryAfterSeconds: 1,
  })

/** `The Service "x" is invalid: …`, with each cause in the details. kubectl adds the article. */
export function invalid(group: string, kind: string, name: string, causes: readonly Cause[]): StatusError {
  const sentences = causes.map(({ field, message }) => `${field}: ${message}`)
  const text = sentences.length === 1 ? sentences[0] : `[${sentences.join(', ')}]`
  const subject = group === '' ? kind : `${kind}.${group}`
  return new StatusError(422, 'Invalid', `${subject} "${name}" is invalid: ${text}`, {
    name,
    ...(group === '' ? {} : { group }),
    kind,
    causes: [...causes],
  })
}
