// Where a single-file kpng begins. It goes by the name it is called by, so that `kpng-json` may be a link to it, or a copy.
import { basename } from 'node:path'
import { main } from '../../cli/main.ts'
import { isSingleFile } from '../../cli/self.ts'

const words = { 'kpng-json': ['local', 'to-json'], 'kpng-callout': ['local', 'to-callout'] }
// In an executable this is how it was called, not the file that a link leads to.
const name = basename((process.argv[1] ?? '').replaceAll('\\', '/')).replace(/\.(exe|cjs)$/i, '')
const known = name in words ? name : 'kpng'

// The bundle of the container image is run by a Node beside it, and is started again with its own path.
if (process.getBuiltinModule?.('node:sea').isSea()) isSingleFile()
main([...(words[known] ?? []), ...process.argv.slice(2)], known).then((code) => {
  process.exitCode = code
})
