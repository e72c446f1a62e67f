import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'

// What deploy/Dockerfile makes, without a container engine: the same context, the same command, the same folders.

/** Copies what the engine would get of a checkout: the files that Dockerfile.dockerignore leaves, and the npm packages. */
export function copyBuildContext(root: string, to: string): void {
  const rules = readFileSync(join(root, 'deploy/Dockerfile.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  const isSent = (file: string) =>
    rules.reduce((sent, rule) => {
      return patternOf(rule.replace(/^!/, '')).test(file) ? rule.startsWith('!') : sent
    }, true)
  const known = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  })
  for (const file of known.split('\n').filter((each) => each !== '' && isSent(each) && existsSync(join(root, each)))) {
    mkdirSync(dirname(join(to, file)), { recursive: true })
    copyFileSync(join(root, file), join(to, file))
  }
  // Hard links: what `npm ci` would install, without a network and without the time. Links between packages lead into the copy.
  execFileSync('cp', ['-al', join(root, 'node_modules'), join(to, 'node_modules')])
}

/** A rule matches a file, or a folder with all that is in it. `**` is any number of folders, `*` any part of one name. */
const patternOf = (rule: string): RegExp =>
  new RegExp(
    `^${rule
      .replaceAll('.', '\\.')
      .replaceAll('**/', '(?:.+/)?')
      .replace(/(?<!\.|\))\*/g, '[^/]*')}(?:/|$)`,
  )

/** Makes the tree of the image from a bundle: Node with the libraries that it needs, and kpng where the Dockerfile puts it. */
export function makeImageTree(root: string, bundle: string, tree: string): void {
  const libraries = execFileSync('ldd', [process.execPath], { encoding: 'utf8' }).matchAll(/(\/\S+) \(0x/g)
  for (const file of [...libraries].map(([, path]) => path as string)) {
    mkdirSync(join(tree, dirname(file)), { recursive: true })
    copyFileSync(file, join(tree, file))
  }
  const dockerfile = readFileSync(join(root, 'deploy/Dockerfile'), 'utf8')
  const [, from, place] = /^COPY --from=build (\S+) (\S+)$/m.exec(dockerfile) ?? []
  const [, names, target] = /for name in ([^;]+); do ln -s (\S+) \/usr\/local\/bin\/\$name/.exec(dockerfile) ?? []
  if (from === undefined || place === undefined || names === undefined || target === undefined)
    throw new Error('deploy/Dockerfile copies and links in another way than this test knows.')
  mkdirSync(join(tree, 'usr/local/bin'), { recursive: true })
  mkdirSync(join(tree, 'tmp'), { mode: 0o1777 })
  copyFileSync(process.execPath, join(tree, 'usr/local/bin/node'))
  // The shebang of the command asks env.
  mkdirSync(join(tree, 'usr/bin'), { recursive: true })
  copyFileSync('/usr/bin/env', join(tree, 'usr/bin/env'))
  cpSync(bundle, join(tree, place), { recursive: true })
  for (const name of names.split(' ')) symlinkSync(target, join(tree, 'usr/local/bin', name))
}
