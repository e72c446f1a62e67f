// Generates api/gen from api/proto, and the PrometheusRule from the alerts. With --check: fails when what is committed differs.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { bin, install, root, run } from './steps.js'

const committed = join(root, 'api', 'gen')

const alerts = join(root, 'deploy', 'prometheus', 'alerts.yaml')
const rule = join(root, 'deploy', 'components', 'alerts', 'rule.yaml')

/** Kustomize cannot put a file below another object's `spec`. The groups of the alerts are the same text, two spaces further in. */
function prometheusRule() {
  const text = readFileSync(alerts, 'utf8')
  const groups = text.slice(text.indexOf('groups:')).replace(/^(?=.)/gm, '  ')
  return `# Generated from deploy/prometheus/alerts.yaml: npm run generate.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: kpng
  namespace: kube-system
  labels:
    app.kubernetes.io/name: kpng
spec:
${groups}`
}

function generateInto(folder) {
  const template = JSON.stringify({
    version: 'v2',
    plugins: [{ local: bin('protoc-gen-es'), out: folder, opt: ['target=ts', 'import_extension=js'] }],
  })
  run(bin('buf'), ['generate', '--template', template, join(root, 'api', 'proto')])
}

const filesBelow = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath ?? entry.path, entry.name)))
    .sort()

function check() {
  const fresh = mkdtempSync(join(tmpdir(), 'kpng-gen-'))
  try {
    generateInto(fresh)
    const names = [...new Set([...filesBelow(fresh), ...filesBelow(committed)])]
    const read = (folder, name) => (existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8') : '')
    const stale = names.filter((name) => read(fresh, name) !== read(committed, name))
    if (!existsSync(rule) || readFileSync(rule, 'utf8') !== prometheusRule()) stale.push(relative(root, rule))
    if (stale.length === 0) return
    console.error(
      `Generated files differ from their sources: ${stale.join(', ')}. Run "npm run generate" and commit the result.`,
    )
    process.exit(1)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

install()
if (process.argv.includes('--check')) check()
else {
  rmSync(committed, { recursive: true, force: true })
  generateInto(committed)
  writeFileSync(rule, prometheusRule())
}
