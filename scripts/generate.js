// Generates api/gen from api/proto. With --check: generates elsewhere and fails when the committed code differs.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { bin, install, root, run } from './steps.js'

const committed = join(root, 'api', 'gen')

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
    if (stale.length === 0) return
    console.error(
      `Generated code differs from api/proto: ${stale.join(', ')}. Run "npm run generate" and commit the result.`,
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
}
