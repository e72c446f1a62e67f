import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { health } from '@kpng/api'
import type { Call, Handler } from './call.js'
import { frame } from './frames.js'
import { RpcError, Status } from './status.js'

/** Who knows whether a service serves. The service '' stands for the whole server. */
export interface HealthSource {
  /** undefined: no such service. */
  status(service: string): 'SERVING' | 'NOT_SERVING' | undefined
  /** Calls the listener after any status may have changed, until the returned function is called. */
  onChange(listener: () => void): () => void
}

const { HealthCheckRequestSchema, HealthCheckResponseSchema, HealthCheckResponse_ServingStatus: ServingStatus } = health

const answer = (status: health.HealthCheckResponse_ServingStatus) =>
  frame(toBinary(HealthCheckResponseSchema, create(HealthCheckResponseSchema, { status })))

const answers = {
  SERVING: answer(ServingStatus.SERVING),
  NOT_SERVING: answer(ServingStatus.NOT_SERVING),
  SERVICE_UNKNOWN: answer(ServingStatus.SERVICE_UNKNOWN),
}

/** The handlers of `grpc.health.v1.Health`, by path. */
export function healthHandlers(source: HealthSource): [string, Handler][] {
  return [
    ['/grpc.health.v1.Health/Check', (call) => check(call, source)],
    ['/grpc.health.v1.Health/Watch', (call) => watch(call, source)],
  ]
}

async function check(call: Call, source: HealthSource): Promise<void> {
  const service = await askedService(call)
  const status = source.status(service)
  if (status === undefined) {
    throw new RpcError(Status.NOT_FOUND, `This server has no service ${JSON.stringify(service)}`)
  }
  await call.write(answers[status])
}

/** One answer at once, then one for each change of status; changes that a slow client has not seen yet coalesce. */
async function watch(call: Call, source: HealthSource): Promise<void> {
  const service = await askedService(call)
  let changed = () => {}
  const stop = source.onChange(() => changed())
  call.signal.addEventListener('abort', () => changed(), { once: true })
  try {
    let told: keyof typeof answers | undefined
    while (!call.signal.aborted) {
      const next = new Promise<void>((resolve) => {
        changed = resolve
      })
      const status = source.status(service) ?? 'SERVICE_UNKNOWN'
      if (status !== told) await call.write(answers[status])
      told = status
      await next
    }
  } finally {
    stop()
  }
}

async function askedService(call: Call): Promise<string> {
  const request = await call.nextRequest()
  if (request === undefined) throw new RpcError(Status.INVALID_ARGUMENT, 'The call ended without a request')
  try {
    return fromBinary(HealthCheckRequestSchema, request).service
  } catch (error) {
    throw new RpcError(Status.INVALID_ARGUMENT, 'The request is no HealthCheckRequest', { cause: error })
  }
}
