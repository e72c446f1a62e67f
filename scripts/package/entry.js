// Where a single-file kpng begins. It goes by the name it is called by, so that `kpng-json` may be a link to it, or a copy.
import { basename } from 'node:path'
import { main } from '../../cli/main.ts'
import { isSingleFile } from '../../cli/self.ts'

const names = ['kpng', 'kpng-json', 'kpng-callout']
// In an executable this is how it was called, not the file that a link leads to.
const name = basename((process.argv[1] ?? '').replaceAll('\\', '/')).replace(/\.(exe|cjs)$/i, '')
const known = names.includes(name) ? name : 'kpng'

// The bundle of the container image is run by a Node beside it, and is started again with its own path.
if (process.getBuiltinModule?.('node:sea').isSea()) isSingleFile()
main(process.argv.slice(2), known).then((code) => {
  process.exitCode = code
})
