import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { kpngv1, type ServiceAnswer } from '@kpng/api'
import type { Store } from '../../store/index.js'
import { explainService } from '../../view/index.js'
import { frame, type Handler, RpcError, Status } from './grpc/index.js'
import { CallRate } from './grpc/limits.js'

/** What the core says about a Service (`namespace/name`) to a node. */
export type AnswerService = (service: string, nodeName: string) => Promise<ServiceAnswer>

export interface ExplainSettings {
  readonly store: Store
  /** Default: what the store says. */
  readonly answer?: AnswerService | undefined
  /** Monotonic time in milliseconds. Default performance.now. */
  readonly nowMs?: () => number
}

/** Of all nodes together. People ask; a program that asks all the time must not keep the core from its work, nor burden the API server. */
const questions = { callsPerSecond: 20, callBurst: 100 }

/** The longest name that Kubernetes has. */
const maxNameLength = 253

/** `/kpng.v1.Explain/Service`: which endpoints of a Service a node uses, and why not the others. */
export function explainHandler({ store, answer, nowMs }: ExplainSettings): Handler {
  const answerOf: AnswerService = answer ?? (async (service, nodeName) => explainService(store, service, nodeName))
  const rate = new CallRate(questions, nowMs)
  return async (call) => {
    const { service, nodeName } = questionIn(await call.nextRequest())
    if (!store.synced) throw new RpcError(Status.UNAVAILABLE, 'This core does not know the cluster yet')
    if (!rate.take())
      throw new RpcError(Status.RESOURCE_EXHAUSTED, 'This core is asked too often: ask again in a second')
    const answerJson = Buffer.from(JSON.stringify(await answerOf(service, nodeName)), 'utf8')
    await call.write(frame(toBinary(kpngv1.ServiceReplySchema, create(kpngv1.ServiceReplySchema, { answerJson }))))
  }
}

function questionIn(bytes: Buffer | undefined): { service: string; nodeName: string } {
  if (bytes === undefined) throw new RpcError(Status.INVALID_ARGUMENT, 'The call ended without a request')
  const { namespace, name, nodeName } = decode(bytes)
  for (const [what, text] of Object.entries({ namespace, name, nodeName })) {
    if (text.length > maxNameLength) {
      throw new RpcError(Status.INVALID_ARGUMENT, `The ${what} is longer than ${maxNameLength} characters`)
    }
  }
  if (namespace === '' || name === '') throw new RpcError(Status.INVALID_ARGUMENT, 'The request names no Service')
  return { service: `${namespace}/${name}`, nodeName }
}

function decode(bytes: Buffer): kpngv1.ServiceRequest {
  try {
    return fromBinary(kpngv1.ServiceRequestSchema, bytes)
  } catch (error) {
    throw new RpcError(Status.INVALID_ARGUMENT, 'The request is not a kpng.v1.ServiceRequest', { cause: error })
  }
}
