import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SourceStatus } from '@kpng/client'
import { load } from 'js-yaml'
import { describe, expect, onTestFinished, test } from 'vitest'
import { apiClientMetrics } from './api-client-metrics.js'
import { coreMetrics } from './core-metrics.js'
import { countObservations } from './observation-metrics.js'
import { ProxyMetrics } from './proxy-metrics.js'

// Alerts and dashboards that name a metric which does not exist stay silent for ever.

const deploy = (path: string) => fileURLToPath(new URL(`../../deploy/${path}`, import.meta.url))

const zero = () => 0
const source = new SourceStatus()
source.stateCache = { savedAtMs: undefined }
const readings = { apiEvents: zero, nodeLocalEvents: zero, skippedObjects: zero, storeRevision: zero, source }
const ofProxies = (['nftables', 'iptables'] as const).map((mode) => {
  const metrics = new ProxyMetrics({
    mode,
    version: '1.2.3',
    readings,
  })
  countObservations(
    {
      connections: async () => [],
      packets: async () => ({ invalidDropped: 0, localhostNodePortsAccepted: 0 }),
      traffic: new Map(),
      failures: () => new Map(),
      listener: {},
    },
    metrics,
  )
  apiClientMetrics(metrics.registry)
  return metrics.registry
})
const ofCores = coreMetrics('1.2.3', readings, { watchers: {}, changeSetsSent: 0, itemsSent: 0 })

const existing = new Map(
  [...ofProxies, ofCores].flatMap((registry) =>
    registry.getMetricsAsArray().map((metric) => {
      const { name, type, labelNames } = metric as unknown as { name: string; type: string; labelNames?: string[] }
      return [name, { type: String(type), labels: labelNames ?? [] }] as const
    }),
  ),
)

/** What Prometheus itself adds. */
const scrapeLabels = ['job', 'instance', 'le', '__name__']

/** The metric that a name in an expression is about; undefined when it does not exist. */
function metricOf(name: string) {
  const histogram = existing.get(name.replace(/_(?:bucket|sum|count)$/, ''))
  return existing.get(name) ?? (histogram?.type === 'histogram' ? histogram : undefined)
}

const namesIn = (expression: string) =>
  expression.match(/\b(?:kubeproxy|kpng|rest_client|nodejs|process)_[a-z0-9_]+/g) ?? []

/** Labels that are matched or grouped by. */
const labelsIn = (expression: string) =>
  [
    ...[...expression.matchAll(/\b(\w+)\s*(?:=~|!~|!=|=)\s*"/g)].map(([, label]) => label as string),
    ...[...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, labels]) => (labels as string).split(/,\s*/)),
  ].filter((label) => !scrapeLabels.includes(label))

function check(expression: string): void {
  const names = namesIn(expression)
  expect(names.length, `no metric in ${expression}`).toBeGreaterThan(0)
  for (const name of names) expect(metricOf(name), `${name} does not exist`).toBeDefined()
  for (const label of labelsIn(expression)) {
    expect(
      names.some((name) => metricOf(name)?.labels.includes(label)),
      `no ${label} in ${expression}`,
    ).toBe(true)
  }
}

interface Panel {
  readonly title: string
  readonly targets?: readonly { readonly expr: string }[]
}

describe('the dashboard', () => {
  const dashboard = JSON.parse(readFileSync(deploy('grafana/kpng.json'), 'utf8'))
  const panels = (dashboard.panels as readonly Panel[]).filter(({ targets }) => targets)

  test.each(panels.map(({ title, targets }) => [title, targets ?? []] as const))('%s', (_, targets) => {
    for (const { expr } of targets) check(expr)
  })

  test('its variables', () => {
    const queries = dashboard.templating.list.flatMap(({ definition }: { definition?: string }) => definition ?? [])
    expect(queries).toHaveLength(2)
    for (const query of queries) check(query)
  })

  test('shows every metric of kube-proxy and of kpng', () => {
    const shown = new Set(namesIn(JSON.stringify(panels)).map((name) => name.replace(/_(?:bucket|sum|count)$/, '')))
    const ours = [...existing.keys()].filter((name) => /^(?:kubeproxy|kpng|rest_client)_/.test(name))
    expect(ours.filter((name) => !shown.has(name))).toEqual([])
  })
})

describe('the alerts', () => {
  const file = deploy('prometheus/alerts.yaml')
  const rules = (load(readFileSync(file, 'utf8')) as { groups: { rules: unknown }[] }).groups[0]?.rules as {
    alert: string
    expr: string
    annotations: object
  }[]

  test.each(rules.map(({ alert, expr }) => [alert, expr]))('%s', (_, expr) => check(expr as string))

  const missing = spawnSync('promtool', ['--version']).error !== undefined
  if (missing) console.warn('Skipped: promtool is not installed. It is in the Debian package prometheus.')

  test.skipIf(missing)('promtool accepts them', () => {
    const { stdout, status } = spawnSync('promtool', ['check', 'rules', file], { encoding: 'utf8' })
    expect([status, stdout]).toEqual([0, expect.stringContaining(`${rules.length} rules found`)])
  })

  /** Gives series to promtool and compares the alerts that they lead to. What it expects is what it would write into the sentences. */
  function expectAlerts(test: object, values: { readonly [placeholder: string]: string }): void {
    const folder = mkdtempSync(join(tmpdir(), 'kpng-alerts-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const cases = join(folder, 'cases.yaml')
    let text = JSON.stringify({ rule_files: [file], tests: [{ interval: '1m', ...test }] })
    for (const [placeholder, value] of Object.entries(values)) text = text.replaceAll(`{{ ${placeholder} }}`, value)
    writeFileSync(cases, text)
    const { stdout, stderr, status } = spawnSync('promtool', ['test', 'rules', cases], { encoding: 'utf8' })
    expect([status, `${stdout}${stderr}`]).toEqual([0, expect.stringContaining('SUCCESS')])
  }

  const expected = (name: string, labels: { readonly [label: string]: string }) => ({
    exp_labels: { severity: 'warning', ...labels },
    exp_annotations: rules.find(({ alert }) => alert === name)?.annotations,
  })

  test.skipIf(missing)('the event loop of kpng is watched whatever its job is called, and nobody else', () => {
    const late = (job: string) => ({ series: `nodejs_eventloop_lag_p99_seconds{job="${job}"}`, values: '2x20' })
    const ours = ['kpng', 'kube-proxy']
    const alertname = 'KpngEventLoopBlocked'
    const build = ours.map((job) => ({ series: `kpng_build_info{job="${job}"}`, values: '1x20' }))
    expectAlerts(
      {
        input_series: [...[...ours, 'shop'].map(late), ...build],
        alert_rule_test: [{ eval_time: '15m', alertname, exp_alerts: ours.map((job) => expected(alertname, { job })) }],
      },
      { '$labels.instance': '', '$value | humanizeDuration': '2s' },
    )
  })

  test.skipIf(missing)('one stale watch is enough, if it stays so; an outage of some minutes is not', () => {
    const series = (instance: string, resource: string, values: string) => ({
      series: `kpng_source_stale{job="kpng", instance="${instance}", resource="${resource}"}`,
      values,
    })
    const alertname = 'KpngViewStale'
    expectAlerts(
      {
        input_series: [
          series('a', 'services', '0x20'),
          series('a', 'nodes', '0x2 1x18'),
          series('b', 'services', '0x5 1x3 0x12'),
        ],
        alert_rule_test: [
          { eval_time: '15m', alertname, exp_alerts: [expected(alertname, { job: 'kpng', instance: 'a' })] },
        ],
      },
      { '$labels.instance': 'a' },
    )
  })
})

test('the check finds what does not exist', () => {
  expect(() => check('rate(kubeproxy_no_such_metric_total[5m])')).toThrow(/does not exist/)
  expect(() => check('sum by (node) (rate(kpng_k8s_api_events_total[5m]))')).toThrow(/no node/)
  expect(() => check('kpng_store_revision_bucket')).toThrow(/does not exist/)
})
