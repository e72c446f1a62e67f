import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { NftCommand } from './nft-command.js'
import { removeTables } from './tables.js'

// What kpng makes of an nft that fails. Its words are those of real ones.

const folder = mkdtempSync(join(tmpdir(), 'kpng-nft-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** An nft that only says this and fails. */
function failingNft(errors: string, code = 1): NftCommand {
  const path = join(folder, 'nft')
  writeFileSync(path, `#!/bin/sh\ncat >&2 <<'END'\n${errors}\nEND\nexit ${code}\n`)
  chmodSync(path, 0o755)
  return new NftCommand(path)
}

describe('removing tables', () => {
  test.each([
    [
      'no rights',
      'Operation not permitted (you must be root)\nnetlink: Error: cache initialization failed: Operation not permitted',
      'nft cannot list the tables: cache initialization failed: Operation not permitted. Run kpng as root, or give it the capability CAP_NET_ADMIN.',
    ],
    [
      'a library of nft is missing',
      'nft: error while loading shared libraries: libnftables.so.1: cannot open shared object file: No such file or directory',
      'libnftables.so.1: cannot open shared object file: No such file or directory. Try `nft list tables` on this machine.',
    ],
    ['no message', '', 'nft cannot list the tables: exit code 1. Try `nft list tables` on this machine.'],
  ])('fails if nft cannot look: %s', async (_, errors, sentence) => {
    await expect(removeTables(failingNft(errors), undefined)).rejects.toThrow(sentence)
  })

  const foreign =
    'table ip kpng-userspace\ntable ip kpng-ipvs\ntable ip6 kpng-ipvs-edge\ntable ip kube-proxy\ntable inet kpng\ntable ip kpngx\n'
  test.each([
    [undefined, ['delete table ip kpng', 'delete table ip6 kpng', 'delete table ip kpng-special']],
    ['kpng', ['delete table ip kpng', 'delete table ip6 kpng']],
    ['kpng-special', ['delete table ip kpng-special']],
    ['kpng-other', []],
  ])('of %s removes those and no others', async (name, expected) => {
    const path = join(folder, 'listing')
    const said = join(folder, 'said')
    writeFileSync(said, '')
    const tables = `${foreign}table ip kpng\ntable ip6 kpng\ntable ip kpng-special\n`
    writeFileSync(path, `#!/bin/sh\nif [ "$1" = list ]; then printf '${tables}'; else cat >> ${said}; fi\n`)
    chmodSync(path, 0o755)
    await removeTables(new NftCommand(path), name)
    expect(readFileSync(said, 'utf8').split('\n').filter(Boolean)).toEqual(expected)
  })
})
