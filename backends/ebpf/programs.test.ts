import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { type Hook, hooks } from '@kpng/linux/bpf'
import { describe, expect, test } from 'vitest'
import { bundleCode, programPath } from '../../linux/testing/bundle.js'
import { Assembler, r0, r1, u32 } from './assembler/assembler.js'
import { disassemble } from './assembler/disassembler.js'
import { type MapName, shapesFor, sizesFor } from './layout.js'
import { programFor } from './programs.js'
import { whyNoEbpf } from './testing/sandbox.js'

const names = Object.keys(shapesFor(sizesFor(64, false))) as MapName[]
const maps = Object.fromEntries(names.map((name, index) => [name, { name, fd: index + 10 }])) as Record<
  MapName,
  { name: string; fd: number }
>
const options = { maps, hostNamespace: 1n, keepsPeers: true, counts: true }

describe('the programs', () => {
  test.each(Object.keys(hooks) as Hook[])('%s, as text', async (hook) => {
    const program = programFor(hook, options)
    await expect(disassemble(program)).toMatchFileSnapshot(`testing/golden/${hook}.txt`)
  })

  test('leave out what is not asked for', () => {
    const text = disassemble(programFor('connect4', { ...options, keepsPeers: false, counts: false }))
    expect(text).not.toMatch(/map peers|atomic/)
    expect(disassemble(programFor('connect4', options))).toMatch(/atomic[\s\S]*map peers/)
  })
})

test('a jump to nowhere and a label that is there twice are refused', () => {
  expect(() => new Assembler().jump('nowhere').program()).toThrow('A jump leads to "nowhere", which is not there.')
  expect(() => new Assembler().label('here').label('here')).toThrow('The label "here" is there twice.')
})

test('the bytes are as linux/bpf.h has them', () => {
  // Each has a code, two registers, an offset and a constant.
  const { code } = new Assembler().load(r1, u32(r1, 36)).when(r1, '!=', 6, 'out').label('out').exit(1).program()
  const words = code.toString('hex').match(/.{16}/g)
  expect(words).toEqual(['6111240000000000', '5501000006000000', 'b700000001000000', '9500000000000000'])
  expect(disassemble(new Assembler().setWide(r0, 0x1234_5678_9abc_def0n).exit(1).program())).toBe(
    '  r0 = 1311768467463790320\n  r0 = 1\n  exit\n',
  )
})

describe.skipIf(whyNoEbpf() !== undefined)('the kernel', () => {
  // With CAP_PERFMON the verifier overlooks reads of stack that was not written.
  test.each([
    ['takes all programs', '+bpf,+net_admin', 0],
    ['refuses them without CAP_BPF', '+net_admin', 1],
  ])('%s', async (_title, capabilities, status) => {
    const outfile = programPath('load-programs')
    try {
      await bundleCode(
        `import { loadBpf, hooks, loadProgram } from '@kpng/linux/bpf'
        import { createMaps } from './kernel/maps.ts'
        import { shapesFor, sizesFor } from './layout.ts'
        import { programFor } from './programs.ts'
        const sys = await loadBpf()
        const maps = createMaps(sys, shapesFor(sizesFor(64, false)), undefined)
        for (const counts of [true, false]) for (const keepsPeers of [true, false])
          for (const hook of Object.keys(hooks))
            loadProgram(sys, hook, programFor(hook, { maps, hostNamespace: sys.networkNamespaceCookie(), counts, keepsPeers }).code)
        console.log('loaded')`,
        new URL(import.meta.url),
        outfile,
      )
      const rights = ['--bounding-set', `-all,${capabilities}`, '--inh-caps', '-all']
      const {
        stdout,
        stderr,
        status: ended,
      } = spawnSync('setpriv', [...rights, process.execPath, outfile], {
        encoding: 'utf8',
      })
      expect({ ended, stderr: status === 0 ? stderr : '' }).toEqual({ ended: status, stderr: '' })
      if (status === 0) expect(stdout).toBe('loaded\n')
      else expect(stderr).toContain('EPERM')
    } finally {
      rmSync(outfile, { force: true })
    }
  })
})
