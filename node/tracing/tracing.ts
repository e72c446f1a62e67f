import { KpngError, type Log, messageOf } from '@kpng/api'
import type { ConnectionRecord, SyncReport } from '@kpng/client'
import type { Context, Span, Tracer } from '@opentelemetry/api'
import { ratioFrom } from './environment.js'
import { connectionSpans, type SpanTree, syncSpans } from './spans.js'

export interface TracingOptions {
  /**
   * The collector, for instance `http://127.0.0.1:4318`; `/v1/traces` is added when there is no path. Default: the OTEL_EXPORTER_OTLP_…
   * variables of the environment.
   */
  readonly endpoint?: string
  /** The part of all traces that is kept, 0 to 1. Default: what OTEL_TRACES_SAMPLER of the environment says, else 1. */
  readonly sampleRatio?: number
  readonly nodeName: string
  readonly log: Log
  /** How long spans may wait to be sent together. Default 5,000. */
  readonly exportIntervalMs?: number
}

/** Turns what happened into spans. Everything is told afterwards, with its times, so that nothing waits for tracing. */
export interface Tracing {
  recordSync(report: SyncReport): void
  recordConnection(connection: ConnectionRecord): void
  /** Sends what is still waiting, and ends. */
  close(): Promise<void>
}

/** Starts tracing. The OpenTelemetry packages are loaded here and nowhere else: without tracing they cost nothing. */
export async function startTracing(options: TracingOptions): Promise<Tracing> {
  const { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } = await import('@opentelemetry/api')
  const provider = await makeProvider(options)
  const tracer = provider.getTracer('kpng')

  const emit = (tree: SpanTree, parent: Context): void => {
    const span = startSpan(tracer, tree, parent, SpanKind.INTERNAL)
    const inside = trace.setSpan(parent, span)
    for (const child of tree.children ?? []) emit(child, inside)
    if (tree.error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: tree.error })
    span.end(tree.endMs)
  }
  // Decided before anything is made of it: of a thousand changes a second, those that are not kept must cost nothing.
  const ratio = ratioOf(options)
  const isKept = () => ratio >= 1 || Math.random() < ratio
  return {
    recordSync: (report) => {
      if (isKept()) emit(syncSpans(report), ROOT_CONTEXT)
    },
    recordConnection: (connection) => {
      if (isKept()) emit(connectionSpans(connection), ROOT_CONTEXT)
    },
    close: () => provider.shutdown(),
  }
}

function startSpan(tracer: Tracer, { name, startMs, attributes = {} }: SpanTree, parent: Context, kind: number): Span {
  return tracer.startSpan(name, { startTime: startMs, attributes, kind }, parent)
}

async function makeProvider({ endpoint, nodeName, log, exportIntervalMs = 5000 }: TracingOptions) {
  const [{ BasicTracerProvider, BatchSpanProcessor }, { OTLPTraceExporter }, resources] = await Promise.all([
    import('@opentelemetry/sdk-trace-base'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
  ])
  // OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME come before what kpng says of itself.
  const fromEnvironment = resources.detectResources({ detectors: [resources.envDetector] })
  const own = resources.resourceFromAttributes({ 'service.name': 'kpng', 'k8s.node.name': nodeName })
  const exporter = new OTLPTraceExporter(endpoint === undefined ? {} : { url: tracesUrl(endpoint) })
  return new BasicTracerProvider({
    resource: own.merge(fromEnvironment),
    spanProcessors: [new BatchSpanProcessor(sayingFailures(exporter, log), { scheduledDelayMillis: exportIntervalMs })],
  })
}

/** The exporter, with its failures in the log: once when they begin, once when they are over. */
function sayingFailures<Exporter extends { export(...args: never[]): void }>(exporter: Exporter, log: Log): Exporter {
  let failing = false
  const send = exporter.export.bind(exporter) as (
    spans: unknown,
    done: (result: { code: number; error?: Error }) => void,
  ) => void
  const noting: typeof send = (spans, done) =>
    send(spans, (result) => {
      const failed = result.code !== 0
      if (failed && !failing) {
        log.warn('The trace collector cannot be reached; traces are lost until it is back', {
          reason: messageOf(result.error),
        })
      } else if (!failed && failing) log.info('The trace collector is back')
      failing = failed
      done(result)
    })
  return Object.assign(exporter, { export: noting })
}

export function tracesUrl(endpoint: string): string {
  let url: URL
  try {
    url = new URL(endpoint)
  } catch {
    throw new KpngError(
      'usage',
      `"${endpoint}" is no address of a trace collector. Write it like http://127.0.0.1:4318.`,
    )
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new KpngError('usage', `The trace collector "${endpoint}" must be reached by http or https (OTLP over HTTP).`)
  }
  if (url.pathname === '/') url.pathname = '/v1/traces'
  return url.href
}

function ratioOf({ sampleRatio }: TracingOptions): number {
  const ratio = sampleRatio ?? ratioFrom(process.env)
  if (ratio >= 0 && ratio <= 1) return ratio
  throw new KpngError('usage', `The part of traces to keep is no number from 0 (none) to 1 (all): ${ratio}.`)
}
