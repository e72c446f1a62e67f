import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { Commands } from '../testing/commands.js'

const commands = new Commands()
afterEach(() => commands.cleanUp())

test.each([
  ['worker-1', false],
  ['vm-001', true],
])('a backend without a node agent, for the node %s: warns that it is unknown: %s', async (node, warns) => {
  const path = join(commands.folder(), 'state.yaml')
  writeFileSync(path, 'nodes:\n- name: worker-1\nservices: []\n')
  const words = ['file', '-i', path, 'to-local', '--node-name', node, '--once', 'to-json']
  const { code, stderr } = await commands.run('kpng', ...words)
  expect(code).toBe(0)
  expect(stderr.match(/There is no Node object of this name.* node="vm-001"/g)?.length ?? 0).toBe(warns ? 1 : 0)
})
