import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { agentSocketPath } from '@kpng/node/agent-api'
import { startPlayground } from '@kpng/playground'
import { afterEach, expect, test } from 'vitest'
import { Commands } from './testing/commands.js'

const commands = new Commands()
afterEach(() => commands.cleanUp())

/** A socket as a killed process leaves it: it exists, and nobody answers. */
async function deadSocket(path: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true })
  const script = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => console.log('listens'))`
  const server = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(server.stdout, 'data')
  server.kill('SIGKILL')
  await once(server, 'exit')
  expect(existsSync(path)).toBe(true)
}

test('explain asks the API server if the socket is one that a killed kpng left', async () => {
  const folder = commands.folder()
  const kubeconfigPath = join(folder, 'kubeconfig')
  const playground = await startPlayground({ kubeconfigPath })
  const name = `dead-${process.pid}`
  try {
    await deadSocket(agentSocketPath(name))
    const question = ['explain', 'kubernetes', '--service-proxy-name', name]
    const { code, stdout } = await commands.startWith({ KUBECONFIG: kubeconfigPath }, 'kpng', ...question).finished
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('default/kubernetes') })
  } finally {
    rmSync(agentSocketPath(name), { force: true })
    await playground.close()
  }
})

test('a socket that was named and does not answer is an error', async () => {
  const path = join(commands.folder(), 'agent.sock')
  const { code, stderr } = await commands.run('kpng', 'explain', 'web', '--agent-socket', path)
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringContaining(`The agent API on ${path} cannot be asked`),
  })
})

test('after a replay the last state stays until kpng is stopped', async () => {
  const record = join(commands.folder(), 'record')
  const example = new URL('../examples/state.yaml', import.meta.url).pathname
  const recorder = commands.start('kpng', 'file', '-i', example, 'to-record', '-o', record, '-v', '2')
  await recorder.says('Recorded a change')
  await recorder.stop()
  const replay = commands.start('kpng', 'replay', '-i', record, 'to-local', '--node-name', 'vm-001', 'to-json')
  await replay.says('The record was replayed')
  // Time for a process with nothing left to do to end.
  await commands.run('kpng', 'version')
  expect(await replay.stop()).toMatchObject({ code: 0, stderr: expect.stringContaining('Stopping signal="SIGTERM"') })
})
