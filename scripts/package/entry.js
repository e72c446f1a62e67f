// Where a bundled kpng begins: the single-file executable, and the bundle that cli/bin/start.js runs.
import { main } from '../../cli/main.ts'
import { isSingleFile } from '../../cli/self.ts'

// A bundle that Node runs is started again with the path of its script.
if (process.getBuiltinModule?.('node:sea').isSea()) isSingleFile()
main(process.argv.slice(2)).then((code) => {
  process.exitCode = code
})
