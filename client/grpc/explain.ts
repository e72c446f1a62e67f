import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { KpngError, kpngv1, type ServiceAnswer } from '@kpng/api'
import { parseAddresses } from '../address.js'
import { type ClientOptions, defaultApi, defaultNodeName } from '../options.js'
import { newClient } from './connect.js'
import { explainFailure } from './connection-failure.js'

/** How long one core may take to answer. */
const defaultLimitMs = 5000

export type ExplainOptions = Pick<ClientOptions, 'api' | 'tls' | 'nodeName' | 'maxMessageBytes'> & {
  /** How long one core may take to answer. Default 5,000. */
  readonly limitMs?: number
}

/**
 * Asks a core over gRPC which endpoints of a Service (`namespace/name`) this node uses, and why not the others. The addresses are tried in order
 * until one answers. Rejects with a KpngError that says why none does.
 */
export async function explainOverGrpc(service: string, options: ExplainOptions): Promise<ServiceAnswer> {
  let failure: unknown
  for (const target of parseAddresses(options.api ?? defaultApi)) {
    try {
      return await ask(target, service, options)
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

async function ask(target: string, service: string, options: ExplainOptions): Promise<ServiceAnswer> {
  const [namespace = '', name = ''] = service.split('/')
  const nodeName = options.nodeName ?? defaultNodeName()
  const client = await newClient(target, options)
  try {
    const reply = await new Promise<kpngv1.ServiceReply>((resolve, reject) => {
      client.makeUnaryRequest(
        '/kpng.v1.Explain/Service',
        (bytes: Uint8Array) => Buffer.from(bytes),
        (bytes) => fromBinary(kpngv1.ServiceReplySchema, bytes),
        toBinary(kpngv1.ServiceRequestSchema, create(kpngv1.ServiceRequestSchema, { namespace, name, nodeName })),
        { deadline: Date.now() + (options.limitMs ?? defaultLimitMs) },
        (error, answer) => (answer ? resolve(answer) : reject(error)),
      )
    })
    return answerIn(reply)
  } catch (error) {
    throw problemWith(target, error, options)
  } finally {
    client.close()
  }
}

function answerIn({ answerJson }: kpngv1.ServiceReply): ServiceAnswer {
  const answer = JSON.parse(Buffer.from(answerJson).toString('utf8')) as Partial<ServiceAnswer> | null
  if (typeof answer?.service === 'string' && Array.isArray(answer.endpoints) && Array.isArray(answer.nearest)) {
    return answer as ServiceAnswer
  }
  throw new KpngError('invalid', 'its answer is not one of kpng')
}

const unimplemented = 12
const deadlineExceeded = 4
const resourceExhausted = 8

function problemWith(target: string, error: unknown, { tls, limitMs = defaultLimitMs }: ExplainOptions): KpngError {
  const { code, details } = error as { code?: unknown; details?: string }
  const why =
    code === unimplemented
      ? 'it is too old to say why. Update it.'
      : code === deadlineExceeded
        ? `it did not answer within ${limitMs / 1000} s.`
        : code === resourceExhausted && /larger than max|message larger/i.test(details ?? '')
          ? 'its answer is too large. Raise --max-msg-size.'
          : explainFailure(error, tls)
  return new KpngError('unavailable', `The core at ${target} did not say which endpoints are left out: ${why}`, {
    cause: error,
  })
}
