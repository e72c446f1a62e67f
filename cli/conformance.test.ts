import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import { Commands } from './testing/commands.js'

const commands = new Commands()
afterEach(() => commands.cleanUp())

const mayMakeNetworks = spawnSync('unshare', ['--net', 'ip', 'link'], { stdio: 'ignore' }).status === 0
if (!mayMakeNetworks) console.warn('Skipped: without root there is no lab for the conformance kit.')

const hasKubectl = spawnSync('kubectl', ['version', '--client'], { stdio: 'ignore' }).status === 0

test.skipIf(!mayMakeNetworks || !hasKubectl)('a proxy that reads an API server gets the playground', async () => {
  const folder = commands.folder()
  // The proxy asks the API server for the objects of the kit, and ends.
  const proxy =
    'kubectl --kubeconfig {kubeconfig} --cache-dir CACHE -n kpng-conformance get service cluster-ip -o jsonpath={.spec.clusterIPs}'
  const kit = commands.startWith(
    { TMPDIR: folder },
    ...(['kpng', 'conformance', '--only', 'cluster-ip', '--families', 'v4'] as const),
    ...['--proxy', proxy.replace('CACHE', folder)],
  )
  const { code, stderr } = await kit.finished
  expect(stderr).toMatch(/ended with code 0 before it served anything.*10\.96\.\S+fd00:10:96::/s)
  expect(code).toBe(1)
})

test.skipIf(!mayMakeNetworks)(
  'a report that nobody reads to its end is not passed, and leaves nothing behind',
  async () => {
    // Other runs of the kit on this machine have theirs elsewhere.
    const temporary = commands.folder()
    // Its argument is how it is found again.
    const proxy = `sleep 97${process.pid}`
    const kit = commands.startWith(
      { TMPDIR: temporary },
      ...(['kpng', 'conformance', '--only', 'cluster-ip', '--families', 'v4', '--settle', '0s'] as const),
      ...['--program-timeout', '1s', '--proxy', proxy],
    )
    await kit.says('Round 1')
    kit.child.stdout?.destroy()
    const { code } = await kit.finished
    expect(code).toBe(1)
    expect(readdirSync('/run/netns').filter((name) => name.startsWith(`kpng-${kit.child.pid}-`))).toEqual([])
    const processes = spawnSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).stdout.split('\n')
    expect(processes.filter((line) => line.trim() === proxy)).toEqual([])
    expect(readdirSync(temporary).filter((name) => name.startsWith('kpng-conformance-'))).toEqual([])
  },
)
