// The figures of docs/scale.md: the tables between its marks, and the chart beside it.
import { readFileSync, writeFileSync } from 'node:fs'

const page = new URL('../../docs/scale.md', import.meta.url)
const chart = new URL('../../docs/scale.svg', import.meta.url)

const begin = '<!-- figures: node bench/cluster/index.js --page -->'
const end = '<!-- end of figures -->'

export function writePage(result) {
  const text = readFileSync(page, 'utf8')
  const [before, rest] = text.split(begin)
  const after = rest.split(end)[1]
  writeFileSync(page, `${before}${begin}\n${tables(result)}\n${end}${after}`)
  writeFileSync(chart, chartOf(result))
}

const thousands = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, ',')

const table = (header, rows) =>
  [header, header.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')

function tables({ size, cores, load, node, seconds, rows }) {
  const servers = rows.filter(({ what }) => what in serverNames || what.endsWith('relays'))
  const formula = sizing(rows.filter(({ what }) => what === 'one core'))
  const busy =
    load > 1 ? ' Programs that ran before, or beside it, count in this: compare CPU times rather than wall times.' : ''
  return `
${thousands(size.services)} Services × ${size.endpoints} endpoints, ${cores} CPUs, Node ${node.slice(1)}, ${seconds} s in all. Load average before the run: ${load}.${busy}
All nodes are real connections over loopback. The servers share the CPUs with the simulated nodes, whose CPU time is given beside that of the servers.

One endpoint changes:

${table(
  [
    'servers',
    'nodes',
    'last node knows, p50',
    'max',
    'CPU of the busiest server',
    'CPU of all nodes',
    'memory of the core',
  ],
  servers.map((row) => [
    serverNames[row.what] ?? `core and ${row.what}`,
    thousands(row.nodes),
    `${row.p50Ms} ms`,
    `${row.maxMs} ms`,
    `${row.cpuMs} ms`,
    `${row.nodesCpuMs} ms`,
    row.rssMb === undefined ? '' : `${row.rssMb} MB`,
  ]),
)}

More changes:

${table(
  ['what happens', 'nodes', 'result', 'CPU of the core', 'longest pause', 'longest own work'],
  rows.flatMap((row) => (events[row.what] ? [events[row.what](row)] : [])),
)}

All nodes come back at once:

${table(
  [
    'they come back to',
    'nodes',
    'until all are back',
    'CPU of the core',
    'CPU of all nodes',
    'longest pause',
    'longest own work',
    'most bytes of one node',
  ],
  rows
    .filter(({ what }) => what === 'all come back')
    .map((row) => [
      row.how,
      thousands(row.nodes),
      secondsOf(row.allMs),
      secondsOf(row.cpuMs),
      secondsOf(row.nodesCpuMs),
      `${row.pauseMs} ms`,
      `${row.ownMs} ms`,
      thousands(row.mostBytes),
    ]),
)}

From these figures: memory ≈ ${formula.baseMb} MB + ${formula.kbPerNode} kB per connected node; CPU per change ≈ ${formula.baseMs} ms + ${formula.usPerNode} µs per node.`
}

const serverNames = { 'one core': 'one core', 'plain sockets': 'plain sockets, for comparison' }

const secondsOf = (ms) => `${(ms / 1000).toFixed(2)} s`

/** A row of the table for each event that was measured. */
const events = {
  'rolling update': (row) => [
    `rolling update: ${thousands(row.changes)} changes in ${row.seconds} s`,
    thousands(row.nodes),
    `p50 ${row.p50Ms} ms, p99 ${row.p99Ms} ms, max ${row.maxMs} ms`,
    `${row.cpuMs} ms per change`,
    `${row.pauseMs} ms`,
    `${row.ownMs} ms`,
  ],
  'a zone lost': (row) => [
    'a third of all endpoints is lost in one update',
    thousands(row.nodes),
    `all know after ${secondsOf(row.allMs)}`,
    secondsOf(row.cpuMs),
    `${row.pauseMs} ms`,
    `${row.ownMs} ms`,
  ],
}

/** A line through the smallest and the largest number of nodes. */
function sizing(rows) {
  const [small, large] = [rows[0], rows.at(-1)]
  const perNode = (field) =>
    small === large ? 0 : Math.max(0, (large[field] - small[field]) / (large.nodes - small.nodes))
  return {
    baseMb: Math.round(small.rssMb - perNode('rssMb') * small.nodes),
    kbPerNode: Math.round(perNode('rssMb') * 1024),
    baseMs: Math.max(0, small.cpuMs - perNode('cpuMs') * small.nodes).toFixed(1),
    usPerNode: Math.round(perNode('cpuMs') * 1000),
  }
}

/** Bars: until the last node knows, and the CPU time for it. */
function chartOf({ rows }) {
  const bars = rows
    .filter(({ what }) => what === 'one core' || what.endsWith('relays'))
    .map(({ what, nodes, p50Ms, cpuMs }) => ({
      label:
        what === 'one core' ? `one core, ${thousands(nodes)} nodes` : `core and ${what}, ${thousands(nodes)} nodes`,
      values: [p50Ms, cpuMs],
    }))
  const most = Math.max(1, ...bars.flatMap(({ values }) => values))
  const [left, width, rowHeight] = [230, 360, 46]
  const lines = bars.flatMap(({ label, values }, index) => {
    const top = 40 + index * rowHeight
    return [
      `<text x="${left - 10}" y="${top + 19}" text-anchor="end">${label}</text>`,
      ...values.flatMap((value, kind) => {
        const length = Math.max(1, Math.round((value / most) * width))
        const y = top + kind * 15
        return [
          `<rect x="${left}" y="${y}" width="${length}" height="12" fill="${['#2563eb', '#94a3b8'][kind]}"/>`,
          `<text x="${left + length + 6}" y="${y + 10}" font-size="11">${value} ms</text>`,
        ]
      }),
    ]
  })
  const height = 50 + bars.length * rowHeight
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 ${height}" font-family="sans-serif" font-size="13" role="img" aria-label="One change to all nodes: time until the last node knows, and CPU time of the busiest server">
<rect width="680" height="${height}" fill="#ffffff"/>
<g fill="#1e293b">
<rect x="${left}" y="12" width="12" height="12" fill="#2563eb"/><text x="${left + 18}" y="22">last node knows (p50)</text>
<rect x="${left + 180}" y="12" width="12" height="12" fill="#94a3b8"/><text x="${left + 198}" y="22">CPU of the busiest server</text>
${lines.join('\n')}
</g>
</svg>
`
}
