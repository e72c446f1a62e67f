import { KpngError } from '@kpng/api'

type Environment = Readonly<Record<string, string | undefined>>

/** Whether the OTEL_ variables alone ask for traces. */
export const tracingAskedFor = (env: Environment): boolean =>
  Boolean(env.OTEL_EXPORTER_OTLP_ENDPOINT || env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) && !tracingForbidden(env)

/** Whether they forbid them, whatever flags say: OpenTelemetry's own switches. */
export const tracingForbidden = (env: Environment): boolean =>
  env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none'

/** The part of traces that OTEL_TRACES_SAMPLER and its argument keep. No trace comes with a parent, so that these are alike. */
export function ratioFrom(env: Environment): number {
  const sampler = env.OTEL_TRACES_SAMPLER?.replace(/^parentbased_/, '') || 'traceidratio'
  switch (sampler) {
    case 'always_on':
      return 1
    case 'always_off':
      return 0
    case 'traceidratio':
      return env.OTEL_TRACES_SAMPLER_ARG ? Number(env.OTEL_TRACES_SAMPLER_ARG) : 1
    default:
      throw new KpngError(
        'usage',
        `OTEL_TRACES_SAMPLER is "${env.OTEL_TRACES_SAMPLER}". Write always_on, always_off or traceidratio, or give --trace-ratio.`,
      )
  }
}
