import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
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

describe('a table', () => {
  test.each([
    ['nft 1.0', 'Error: No such file or directory\nlist table ip kpng\n              ^^^^'],
    [
      'nft that guesses',
      'Error: No such file or directory; did you mean table ‘kpng’ in family inet?\nlist table ip kpng',
    ],
  ])('is absent when nft says so: %s', async (_, errors) => {
    expect(await failingNft(errors).outline('ip')).toBeUndefined()
    await removeTables(failingNft(errors))
  })

  test.each([
    [
      'no rights',
      'Operation not permitted (you must be root)\nnetlink: Error: cache initialization failed: Operation not permitted',
      'nft cannot list table ip kpng: cache initialization failed: Operation not permitted. Run kpng as root, or give it the capability CAP_NET_ADMIN.',
    ],
    [
      'a library of nft is missing',
      'nft: error while loading shared libraries: libnftables.so.1: cannot open shared object file: No such file or directory',
      'libnftables.so.1: cannot open shared object file: No such file or directory. Try `nft list table ip kpng` on this machine.',
    ],
    ['not a word', '', 'nft cannot list table ip kpng: exit code 1. Try `nft list table ip kpng` on this machine.'],
  ])('may be there when nft cannot look: %s', async (_, errors, sentence) => {
    await expect(failingNft(errors).outline('ip')).rejects.toThrow(sentence)
    await expect(removeTables(failingNft(errors))).rejects.toThrow(sentence)
  })
})
