import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { whySkipped } from '../linux/lab/index.js'
// @ts-expect-error: plain JavaScript, as all scripts
import { withoutSignature } from './package/authenticode.js'
// @ts-expect-error: plain JavaScript, as all scripts
import { bakeFiles } from './package/baked-files.js'
// @ts-expect-error: plain JavaScript, as all scripts
import { entryOf } from './package/npm-files.js'
// @ts-expect-error: plain JavaScript, as all scripts
import { pageFilesModule } from './package/page-files.js'
// @ts-expect-error: plain JavaScript, as all scripts
import { nodeVersion } from './package/targets.js'
import { copyBuildContext, makeImageTree } from './testing/image-tree.js'
// @ts-expect-error: plain JavaScript, as all scripts
import { windowsNode } from './testing/windows-node.js'

const root = new URL('..', import.meta.url).pathname
const { version } = JSON.parse(readFileSync(join(root, 'cli', 'package.json'), 'utf8')) as { version: string }
const state = join(root, 'examples', 'state.yaml')
const folder = mkdtempSync(join(tmpdir(), 'kpng-package-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const hasPostject = (() => {
  try {
    createRequire(import.meta.url).resolve('postject')
    return true
  } catch {
    return false
  }
})()
const isLinux = process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch)
const hasWine = spawnSync('wine', ['--version'], { stdio: 'ignore' }).status === 0
if (!hasPostject) console.warn('postject is missing: no executable is made. Run npm install to have them tested.')
if (!hasWine) console.warn('wine is missing: the Windows executable is not run. Install wine to have it tested.')

/** Runs scripts/package.js. Where the Nodes of other platforms are kept can be said, so that they are not fetched each time. */
function makePackage(...args: string[]): string {
  const cache = process.env.KPNG_PACKAGE_CACHE
  const all = [join(root, 'scripts', 'package.js'), ...args, ...(cache ? ['--cache', cache] : [])]
  return execFileSync(process.execPath, all, { encoding: 'utf8' })
}

/** What every form of the command must do. */
function behaves(
  run: (name: string, args: readonly string[]) => { status: number | null; stdout: string; stderr: string },
) {
  test('it says its version', () => {
    expect(run('kpng', ['--version'])).toMatchObject({ status: 0, stdout: `${version}\n` })
  })

  test('it reads a state, works out a node and hands it to a backend', () => {
    const { status, stdout, stderr } = run('kpng', [
      'file',
      '-i',
      state,
      'to-local',
      '--once',
      '--node-name',
      'vm-001',
      'to-json',
    ])
    expect({ status, stderr }).toMatchObject({ status: 0 })
    const names = stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { Service: { Name: string } }).Service.Name)
    expect(names).toEqual(['cache', 'web', 'dns'])
  })

  test('a wrong flag is wrong usage', () => {
    const { status, stderr } = run('kpng', ['file', '--no-such-flag', 'to-api'])
    expect(status).toBe(2)
    expect(stderr).toContain("unknown option '--no-such-flag'")
  })

  test('as kpng-json it is kpng-json', () => {
    const { status, stderr } = run('kpng-json', ['--no-such-flag'])
    expect(status).toBe(2)
    expect(stderr).toContain('Run "kpng-json --help"')
  })
}

describe('the bundle', () => {
  const bundle = join(folder, 'bundle')
  beforeAll(() => {
    makePackage('--bundle', bundle)
    for (const name of ['kpng', 'kpng-json']) symlinkSync(join(bundle, 'kpng.cjs'), join(folder, name))
  })

  // By way of links, as in the image.
  behaves((name, args) => spawnSync(process.execPath, [join(folder, name), ...args], { encoding: 'utf8' }))

  describe('its code cache', () => {
    /** A copy of the bundle, whose cache may be changed. */
    function copied(name: string) {
      const copy = join(folder, name)
      cpSync(bundle, copy, { recursive: true })
      const caches = () => readdirSync(copy).filter((file) => file.endsWith('.cache'))
      const run = (...args: string[]) => spawnSync(process.execPath, [join(copy, 'kpng.cjs'), ...args]).status
      return { copy, caches, run }
    }

    test('is there for questions and for agents, and a run leaves it as it is', () => {
      const { copy, caches, run } = copied('same')
      expect(caches().map((file) => file.split('.').at(-2))).toEqual(['agent', 'command'])
      const before = caches().map((file) => statSync(join(copy, file)).ino)
      expect(run('--help')).toBe(0)
      expect(caches().map((file) => statSync(join(copy, file)).ino)).toEqual(before)
    })

    test('is not trusted when it is damaged, and is made again', () => {
      const { copy, caches, run } = copied('damaged')
      const good = statSync(join(copy, caches().at(-1) as string)).size
      for (const file of caches()) writeFileSync(join(copy, file), 'x'.repeat(1000))
      expect(run('--help')).toBe(0)
      expect(statSync(join(copy, caches().at(-1) as string)).size).toBeGreaterThan(good / 2)
    })

    test('is not used for another bundle, even of the same length', () => {
      const { copy, run } = copied('other')
      const file = join(copy, 'kpng-bundle.cjs')
      const text = readFileSync(file, 'utf8')
      const other = text.replace(
        'Kubernetes Service proxy, next generation',
        'Kubernetes Service proxy, next generatioN',
      )
      expect(other).not.toBe(text)
      writeFileSync(file, other.replace(/^.{19}/, '// 0123456789abcdef'))
      const { stdout } = spawnSync(process.execPath, [join(copy, 'kpng.cjs'), '--help'], { encoding: 'utf8' })
      expect(stdout).toContain('next generatioN')
      expect(run('--help')).toBe(0)
    })
  })

  test('names the licences of what is in it', () => {
    const text = readFileSync(join(bundle, 'LICENSES.txt'), 'utf8')
    for (const name of ['commander', 'undici', '@grpc/grpc-js']) expect(text).toContain(`\n${name} `)
  })

  test('has a list of what is in it: the bundled packages and the library, and nothing that only builds it', () => {
    const components = componentsIn(join(bundle, 'kpng.cdx.json'))
    const licensed = licensedIn(join(bundle, 'LICENSES.txt'))
    expect(components.filter((one) => !one.startsWith('@koromix/'))).toEqual(licensed)
    expect(components.filter((one) => /^(node-|esbuild|vitest|typescript)/.test(one))).toEqual([])
  })

  test.skipIf(whySkipped('the bundle starts itself in a lab', 'nft'))('starts itself again, as labs need', async () => {
    const lab = spawn(process.execPath, [join(folder, 'kpng'), 'playground', '--lab', 'nft'])
    let said = ''
    for (const stream of [lab.stdout, lab.stderr]) stream.on('data', (chunk) => (said += chunk))
    const closed = once(lab, 'close')
    await expect.poll(() => said, { timeout: 90_000 }).toContain(' → web-')
    lab.kill('SIGTERM')
    expect((await closed)[0]).toBe(0)
  })
})

/** Starts kpng with its live page, and loads the page with everything that it is made of. */
async function loadsItsPage(command: readonly string[], stateFile: string): Promise<void> {
  const [program = '', ...before] = command
  const place = ['--dashboard', '127.0.0.1:0', '--healthz-bind-address=', '--metrics-bind-address=', '--agent-socket=']
  const args = [
    'file',
    '-i',
    stateFile,
    'to-local',
    '--node-name',
    'vm-001',
    'to-userspacelin',
    '--capture=none',
    ...place,
  ]
  const kpng = spawn(program, [...before, ...args], { env: { PATH: process.env.PATH } })
  let said = ''
  for (const stream of [kpng.stdout, kpng.stderr]) stream.on('data', (chunk) => (said += chunk))
  const closed = once(kpng, 'close')
  try {
    const served = /Serving the dashboard.*(http:\/\/127\.0\.0\.1:\d+)/
    await expect.poll(() => said, { timeout: 90_000 }).toMatch(served)
    const url = served.exec(said)?.[1] ?? ''
    const page = await fetch(`${url}/`)
    expect({ status: page.status, said }).toMatchObject({ status: 200 })
    const files = [...(await page.text()).matchAll(/(?:src|href)="?\.?\/?([\w.-]+\.(?:js|css))/g)].map(
      ([, file]) => file,
    )
    expect(files.map((file) => file?.split('.').at(-1)).sort()).toEqual(['css', 'js'])
    for (const file of files) expect((await fetch(`${url}/${file}`)).status, file).toBe(200)
  } finally {
    kpng.kill('SIGTERM')
    await closed
  }
}

const mayChroot = process.platform === 'linux' && process.getuid?.() === 0
if (!mayChroot)
  console.warn('Not root on Linux: the tree of the image is not tested. Run the tests as root to have it tested.')

describe.skipIf(!mayChroot)('the tree of the image, made of what the image is built from', () => {
  const context = join(folder, 'context')
  const tree = join(folder, 'image')
  const inTree = (name: string, args: readonly string[]) => [
    ...['chroot', '--userspec=65532:65532', tree, `/usr/local/bin/${name}`],
    ...args,
  ]
  let said: string
  beforeAll(() => {
    copyBuildContext(root, context)
    const built = spawnSync(process.execPath, ['scripts/package.js', '--bundle', join(folder, 'kpng-of-image')], {
      cwd: context,
      encoding: 'utf8',
    })
    said = `${built.stdout}${built.stderr}`
    expect(built.status, said).toBe(0)
    makeImageTree(root, join(folder, 'kpng-of-image'), tree)
    copyFileSync(state, join(tree, 'state.yaml'))
  }, 300_000)

  test('building it says nothing that somebody would have to read', () => {
    expect(said).toBe('')
  })

  test('from another folder, the same sources give the same bytes', () => {
    const own = join(folder, 'bundle-of-checkout')
    makePackage('--bundle', own)
    // V8's code cache differs from run to run.
    for (const name of ['kpng-bundle.cjs', 'kpng.cjs', 'kpng.cdx.json', 'LICENSES.txt', 'koffi.node']) {
      const [here, there] = [own, join(folder, 'kpng-of-image')].map((each) => readFileSync(join(each, name)))
      expect(here?.equals(there as Buffer), name).toBe(true)
    }
  })

  test('it has no compiler, no package manager, no tests and no sources', () => {
    const files = readdirSync(tree, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    const names = files.map(({ parentPath, name }) => join(parentPath, name).slice(tree.length))
    const kpng = names.filter((name) => name.startsWith('/usr/local/lib/kpng/')).map((name) => name.slice(20))
    expect(kpng.map((name) => name.replace(/\.[0-9a-f]{16}-.*\.(\w+)\.cache$/, '.$1.cache')).sort()).toEqual([
      ...['LICENSES.txt', 'koffi.node', 'kpng-bundle.agent.cache', 'kpng-bundle.cjs', 'kpng-bundle.command.cache'],
      ...['kpng.cdx.json', 'kpng.cjs'],
    ])
  })

  behaves((name, args) => {
    const [program = '', ...rest] = inTree(
      name,
      args.map((word) => (word === state ? '/state.yaml' : word)),
    )
    return spawnSync(program, rest, { encoding: 'utf8' })
  })

  test('it serves its live page', async () => {
    await loadsItsPage(inTree('kpng', []), '/state.yaml')
  })
})

/** The packages that a CycloneDX document names, as `name version`. */
function componentsIn(file: string): string[] {
  const document = JSON.parse(readFileSync(file, 'utf8')) as {
    bomFormat: string
    components: { name: string; version: string; purl: string; hashes?: { content: string }[] }[]
  }
  expect(document).toMatchObject({ bomFormat: 'CycloneDX', specVersion: '1.5', metadata: { component: { version } } })
  for (const { name, purl, hashes } of document.components) {
    expect(purl, name).toMatch(/^pkg:npm\/(%40[\w.-]+\/)?[\w.-]+@\d/)
    expect(hashes?.[0]?.content, name).toMatch(/^[0-9a-f]{128}$/)
  }
  return document.components.map((one) => `${one.name} ${one.version}`)
}

/** The packages whose licences are in a file, as `name version`. */
const licensedIn = (file: string): string[] =>
  [...readFileSync(file, 'utf8').matchAll(/^={80}\n(\S+ \S+) \(/gm)].map(([, name]) => name as string)

describe.skipIf(!hasPostject || !isLinux)('the Linux executable', () => {
  const target = `linux-${process.arch}`
  const made = join(folder, 'release')
  const program = join(made, `kpng-${target}`)
  beforeAll(() => {
    makePackage('--target', target, '--out', made)
    for (const name of ['kpng', 'kpng-json']) symlinkSync(program, join(made, name))
  }, 300_000)

  behaves((name, args) => spawnSync(join(made, name), args, { encoding: 'utf8', env: { PATH: process.env.PATH } }))

  test('its check sum is written beside it', () => {
    const [sum] = execFileSync('sha256sum', [program], { encoding: 'utf8' }).split(' ')
    expect(readFileSync(join(made, 'SHA256SUMS'), 'utf8')).toBe(`${sum}  kpng-${target}\n`)
  })

  test('it is listed what is in it, Node too', () => {
    const components = componentsIn(join(made, `kpng-${target}.cdx.json`))
    expect(components).toContain(`node-${target} ${nodeVersion}`)
    expect(components.length).toBe(licensedIn(join(made, 'LICENSES.txt')).length + 2)
    expect(readFileSync(join(made, 'LICENSES.txt'), 'utf8')).toContain(`Node.js ${nodeVersion}\n\nNode.js is licensed`)
  })

  test('it serves its live page', async () => {
    await loadsItsPage([program], state)
  })

  test('it serves other nodes, and ends when it is told to', async () => {
    const socket = join(folder, 'kpng.sock')
    const server = spawn(program, ['file', '-i', state, 'to-api', '--listen', `unix://${socket}`], { stdio: 'ignore' })
    try {
      const { stdout } = spawnSync(
        join(made, 'kpng-json'),
        ['--api', `unix://${socket}`, '--node-name', 'vm-001', '--once', '--error-delay', '100ms'],
        {
          encoding: 'utf8',
          timeout: 20_000,
        },
      )
      expect(stdout.trim().split('\n')).toHaveLength(3)
    } finally {
      server.kill('SIGTERM')
    }
    expect(await once(server, 'exit')).toEqual([0, null])
  })

  const mayMakeNetworks = spawnSync('unshare', ['--net', 'nft', '--version'], { stdio: 'ignore' }).status === 0
  test.skipIf(!mayMakeNetworks)('it brings the library that speaks to the kernel, and leaves no file of it', () => {
    const temporary = mkdtempSync(join(folder, 'tmp-'))
    const args = ['--net', program, 'file', '-i', state, 'to-local', '--once', '--node-name', 'vm-001', 'to-nft']
    const { status, stderr } = spawnSync('unshare', args, {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, TMPDIR: temporary },
    })
    expect({ status, stderr }).toMatchObject({ status: 0 })
    expect(execFileSync('ls', ['-A', temporary], { encoding: 'utf8' })).toBe('')
  })

  test.skipIf(!mayMakeNetworks)('it proves proxies, itself first', () => {
    const { status, stdout } = spawnSync(program, ['conformance', '--backend', 'nft', '--only', 'cluster-ip*'], {
      encoding: 'utf8',
      cwd: folder,
      timeout: 300_000,
    })
    expect(stdout).toMatch(/ cells: (\d+) right, 0 wrong/)
    expect(status).toBe(0)
  })

  test('made again it is the same, byte for byte', () => {
    const again = join(folder, 'again')
    makePackage('--target', target, '--out', again)
    expect(readFileSync(join(again, 'SHA256SUMS'), 'utf8')).toBe(readFileSync(join(made, 'SHA256SUMS'), 'utf8'))
  }, 300_000)
})

// The executable itself is made for Node 24, which the wine of Debian 12 cannot run: the same bundle is run by an older Node.
describe.skipIf(!hasWine)('on Windows, as wine is one', () => {
  const made = join(folder, 'windows')
  const env = { ...process.env, WINEPREFIX: join(folder, 'wine'), WINEDEBUG: '-all' }
  let node: string
  beforeAll(() => {
    makePackage('--bundle', made)
    copyFileSync(join(made, 'kpng.cjs'), join(made, 'kpng-json.cjs'))
    node = windowsNode()
    // Node refuses the Windows that wine pretends to be by default.
    spawnSync('wine', ['winecfg', '-v', 'win10'], { env, stdio: 'ignore', timeout: 300_000 })
  }, 400_000)
  afterAll(() => {
    spawnSync('wineserver', ['--kill'], { env, stdio: 'ignore' })
    spawnSync('wineserver', ['--wait'], { env, stdio: 'ignore', timeout: 10_000 })
  })

  // Under wine a program cannot write to a pipe, but it can to a file.
  behaves((name, args) => {
    const files = [join(folder, 'out'), join(folder, 'err')] as const
    const [out, err] = [openSync(files[0], 'w'), openSync(files[1], 'w')]
    const program = [node, join(made, `${name}.cjs`), ...args]
    const { status } = spawnSync('wine', program, { env, stdio: ['ignore', out, err], timeout: 300_000 })
    closeSync(out)
    closeSync(err)
    const text = (file: string) => readFileSync(file, 'utf8').replaceAll('\r\n', '\n')
    return { status, stdout: text(files[0]), stderr: text(files[1]) }
  })
})

describe('files that sources read from beside themselves', () => {
  const files: Record<string, string> = { '/src/package.json': '{"version":"1.2.3"}' }
  const bake = (text: string) =>
    bakeFiles(text, '/src/cli/main.ts', async (path: string) => files[path]) as Promise<string>

  test('are put in', async () => {
    const text = "const x = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))"
    expect(await bake(text)).toBe('const x = JSON.parse("{\\"version\\":\\"1.2.3\\"}")')
  })

  test('any other use of import.meta is refused', async () => {
    await expect(bake('const here = import.meta.dirname')).rejects.toThrow('/src/cli/main.ts uses import.meta')
  })
})

test('the live page is put in as it was built; without one there is no single file', async () => {
  const filesOf = async (): Promise<Map<string, Buffer> | undefined> => {
    const text = pageFilesModule(join(folder, 'page')) as string
    return (await import(`data:text/javascript,${encodeURIComponent(text)}`)).pageFiles()
  }
  mkdirSync(join(folder, 'page'))
  expect(() => pageFilesModule(join(folder, 'page'))).toThrow('has no index.html')
  writeFileSync(join(folder, 'page', 'index.html'), '<p>é</p>')
  writeFileSync(join(folder, 'page', 'meta.json'), '{}')
  expect(await filesOf()).toEqual(new Map([['index.html', Buffer.from('<p>é</p>')]]))
})

test('a file is found in a tar archive, however long its path', () => {
  const source = join(folder, 'tar')
  execFileSync('mkdir', ['-p', join(source, 'package', 'bin')])
  writeFileSync(join(source, 'package', 'a'), 'x'.repeat(1000))
  writeFileSync(join(source, 'package', 'bin', 'node'), 'program')
  const tar = execFileSync('tar', ['--format=ustar', '-C', source, '-c', 'package'])
  expect(String(entryOf(tar, 'package/bin/node'))).toBe('program')
  expect(entryOf(tar, 'package/bin/nod')).toBeUndefined()
})

describe('the signature of a Windows program', () => {
  /** The least that a 64-bit program has: its headers, and eight bytes of signature at the end. */
  function program(signed: boolean): Buffer {
    const bytes = Buffer.alloc(512 + 8, 1)
    bytes.writeUInt32LE(64, 0x3c)
    bytes.write('PE\0\0', 64, 'latin1')
    bytes.writeUInt16LE(0x20b, 64 + 24)
    bytes.writeUInt32LE(signed ? 512 : 0, 64 + 24 + 112 + 32)
    bytes.writeUInt32LE(signed ? 8 : 0, 64 + 24 + 112 + 36)
    return bytes
  }

  test('is taken off, with the header that leads to it', () => {
    const result = withoutSignature(program(true)) as Buffer
    expect(result.length).toBe(512)
    expect(result.readBigUInt64LE(64 + 24 + 112 + 32)).toBe(0n)
  })

  test('is not looked for where there is none', () => {
    const bytes = program(false)
    expect(withoutSignature(bytes)).toBe(bytes)
    expect(() => withoutSignature(Buffer.alloc(512))).toThrow('no Windows program')
  })
})
