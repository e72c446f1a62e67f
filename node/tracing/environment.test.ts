import { expect, test } from 'vitest'
import { ratioFrom, tracingAskedFor, tracingForbidden } from './environment.js'

test.each([
  [{}, 1],
  [{ OTEL_TRACES_SAMPLER_ARG: '0.25' }, 0.25],
  [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.5' }, 0.5],
  [{ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.5' }, 0.5],
  [{ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio' }, 1],
  [{ OTEL_TRACES_SAMPLER: 'always_off', OTEL_TRACES_SAMPLER_ARG: '0.5' }, 0],
  [{ OTEL_TRACES_SAMPLER: 'parentbased_always_on', OTEL_TRACES_SAMPLER_ARG: '0.5' }, 1],
])('%j keeps %d', (env, expected) => expect(ratioFrom(env)).toBe(expected))

test('an unknown sampler is said by name', () => {
  expect(() => ratioFrom({ OTEL_TRACES_SAMPLER: 'jaeger_remote' })).toThrow(/"jaeger_remote"\. Write always_on/)
})

test.each([
  [{}, false, false],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318' }, true, false],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://c:4318/v1/traces' }, true, false],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318', OTEL_SDK_DISABLED: 'true' }, false, true],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318', OTEL_TRACES_EXPORTER: 'none' }, false, true],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318', OTEL_TRACES_EXPORTER: 'otlp' }, true, false],
])('%j: asked for %j, forbidden %j', (env, asked, forbidden) => {
  expect(tracingAskedFor(env)).toBe(asked)
  expect(tracingForbidden(env)).toBe(forbidden)
})
