import { Command, CommanderError } from 'commander'
import { addAgentFlags } from './agent/flags.js'
import { KubeRequests } from './agent/kube-requests.js'
import { addStateCacheFlag, originOf } from './agent/state-cache.js'
import type { BackendCommand } from './backends/backend.js'
import { calloutCommand } from './backends/callout.js'
import { jsonCommand } from './backends/json.js'
import { nftCommand } from './backends/nft.js'
import { userspaceLinuxCommand, userspaceWindowsCommand } from './backends/userspace.js'
import { addClientFlags, clientOptions } from './client-flags.js'
import type { Context, Flags } from './context.js'
import { type Flow, runPipeline } from './pipeline.js'
import { apiSink } from './sinks/api.js'
import { fileSink } from './sinks/file.js'
import { apiSource } from './sources/api.js'
import { fileSource } from './sources/file.js'
import { kubeSource } from './sources/kube.js'
import type { SourceCommand } from './sources/source.js'

// The command tree. Only names, flags and help are here: what a command does is loaded when it runs.

const sources: readonly SourceCommand[] = [kubeSource, fileSource, apiSource]
const sinks = [apiSink, fileSink]
const backends: readonly BackendCommand[] = [
  nftCommand,
  userspaceLinuxCommand,
  userspaceWindowsCommand,
  jsonCommand,
  calloutCommand,
]

/** Makes the context of a run from the flags that every command has. */
export type MakeContext = (flags: Flags) => Promise<Context>

export function buildProgram(name: string, version: string, makeContext: MakeContext): Command {
  const program = new Command(name)
    .description('Kubernetes Service proxy, next generation: kpng <source> [flags] <sink> [flags]')
    .version(version, '--version', 'print the version')
    .option('-v <level>', 'verbosity: 1 connections, 2 syncs, 3 objects, 4 traffic; default 0')
    .option('--log-format <format>', 'text (default) or json')
    .option('--node-name <name>', "the node's name; default: NODE_NAME of the environment, else the host's name")
    .addHelpText(
      'after',
      '\nExample:\n  $ kpng file -i examples/state.yaml to-api\n  $ kpng local --node-name vm-001 to-json',
    )
  for (const source of sources) addSource(program, source, makeContext)
  addLocal(program, makeContext)
  addPlayground(program, makeContext)
  addCleanup(program, makeContext)
  addConformance(program, makeContext)
  program
    .command('version')
    .description('print the version')
    .action(() => console.log(version))
  // Errors come back as exceptions, and their exit codes are ours to choose.
  for (const command of everyCommand(program))
    command.exitOverride().showHelpAfterError(`(run "${name} --help" for the flags)`)
  return program
}

function addSource(program: Command, source: SourceCommand, makeContext: MakeContext): void {
  const command = program.command(source.name).description(source.summary)
  command.addHelpText('after', `\nExample:\n  $ ${source.example}`)
  source.addFlags(command)
  const run = async (sink: Flow, leaf: Command, more: Pick<Context, 'onlyThisNode'> = {}) => {
    const flags = leaf.optsWithGlobals()
    const kube = source.name === 'kube' ? new KubeRequests() : undefined
    const origin = originOf(source.name, flags, kube)
    await runPipeline(source, flags, sink, { ...(await makeContext(flags)), kube, origin, ...more })
  }
  for (const sink of sinks) {
    const leaf = command.command(sink.name).description(sink.summary)
    leaf.addHelpText('after', `\nExample:\n  $ ${sink.example}`)
    sink.addFlags(leaf)
    leaf.action(() => run((store, context, ready) => sink.run(leaf.optsWithGlobals(), store, context, ready), leaf))
  }
  const local = command.command('to-local').description('hand the view of this node to a backend in this process')
  addBackends(local, `kpng ${source.name} to-local`, makeContext, (backend, leaf) =>
    run(
      async (store, context, ready) => {
        const { changeSetsOf } = await import('@kpng/core/sinks/local')
        const { runOn } = await import('./backends/run.js')
        ready()
        await runOn(changeSetsOf(store), backend, leaf.optsWithGlobals(), context)
      },
      leaf,
      { onlyThisNode: true },
    ),
  )
}

function addLocal(program: Command, makeContext: MakeContext): void {
  const local = program.command('local').description('hand the view of this node, from a kpng API, to a backend')
  addClientFlags(local, '')
  addBackends(local, 'kpng local', makeContext, async (backend, leaf) => {
    const flags = leaf.optsWithGlobals()
    const context = { ...(await makeContext(flags)), origin: originOf('local', flags, undefined) }
    const { changeSetsOverGrpc } = await import('@kpng/client')
    const { runOn } = await import('./backends/run.js')
    const { log, source } = context
    const options = { ...(await clientOptions(flags, '')), log, status: source.watch('core') }
    await runOn(changeSetsOverGrpc(options), backend, flags, context)
  })
}

function addConformance(program: Command, makeContext: MakeContext): void {
  const command = program
    .command('conformance')
    .description('prove a Service proxy: real packets in a lab of network namespaces, judged cell by cell (needs root)')
    .option('--proxy <command>', 'the proxy; placeholders: {manifests} {node} {clusterCidr} {kubeconfig}')
    .option('--specialised-proxy <command>', 'a second proxy, for Services with the proxy name {serviceProxyName}')
    .option('--backend <name>', "whose named deviations count; without --proxy, kpng's own backend: nft or userspace")
    .option('--kubeconfig <path>', 'feed the proxy through this API server, instead of by manifests')
    .option('--only <patterns...>', 'cases or cells; may be given several times')
    .option('--families <families>', 'v4, v6; default: both')
    .option('--settle <duration>', 'how long a wrong cell may still become right', '3s')
    .option('--program-timeout <duration>', 'how long the proxy may take to program a round', '15s')
    .option('--json <path>', 'write the report as JSON')
    .option('--junit <path>', 'write the report as JUnit XML')
    .addHelpText('after', '\nExample:\n  $ kpng conformance --backend nft')
  command.action(async () => {
    const flags = command.optsWithGlobals()
    const { proveProxy } = await import('./conformance.js')
    await proveProxy(flags, await makeContext(flags))
  })
  // What the kit starts in each namespace of its lab.
  program
    .command('conformance-agent <name>', { hidden: true })
    .action(async (name: string) => (await import('@kpng/linux/testing')).runAgent(name))
}

function addCleanup(program: Command, makeContext: MakeContext): void {
  const command = program
    .command('cleanup')
    .description("take away what kpng's backends left on this machine, and nothing of anybody else")
    .option('--backend <name>', 'only of this one: nft, userspacelin, userspacelin-iptables; on Windows winuserspace')
    .option('--state-file <path>', 'on Windows: the file that to-winuserspace was given')
    .option(
      '--kube-proxy',
      "take away what kube-proxy left, of all its modes, instead of what kpng left; with --backend: kube-proxy's and that backend's",
    )
    .option('--dry-run', 'with --kube-proxy: print the commands instead of running them')
    .addHelpText('after', '\nExamples:\n  $ kpng cleanup\n  $ kpng cleanup --kube-proxy --dry-run')
  command.action(async () => {
    const flags = command.optsWithGlobals()
    const { cleanUp } = await import('./cleanup.js')
    await cleanUp(flags, await makeContext(flags))
  })
}

function addPlayground(program: Command, makeContext: MakeContext): void {
  const command = program
    .command('playground')
    .description('try kpng without a cluster: an API server, sample pods and a proxy, all on loopback and without root')
    .option('--port <port>', 'of the API server; 0: any free one', '0')
    .option('--data-dir <folder>', 'keep the objects there; default: they are forgotten')
    .option('--kubeconfig <path>', 'where to write the kubeconfig; default: a temporary file')
    .option('--listen <address>', 'where kpng serves its API', 'tcp://127.0.0.1:12090')
    .option(
      '--service-cidr <cidr>',
      'range of the cluster IPs, on loopback; a second playground needs its own',
      '127.96.0.0/16',
    )
    .option('--pod-cidr <cidr>', 'range of the pod IPs, on loopback', '127.10.0.0/16')
    .option('--demo [bool]', 'make a demo Service with three pods, and call it', 'true')
    .addHelpText('after', '\nExample:\n  $ kpng playground')
  command.action(async () => {
    const flags = command.optsWithGlobals()
    const context = await makeContext(flags)
    const { runPlayground } = await import('./playground/run.js')
    await runPlayground(flags, context)
  })
}

/** The privileged part alone: no source is asked, and nothing is served. */
async function initOnly(leaf: Command, makeContext: MakeContext): Promise<void> {
  const flags = leaf.optsWithGlobals()
  const { resolved, log } = await makeContext(flags)
  const { prepareSystem } = await import('./agent/settings.js')
  await prepareSystem(resolved as NonNullable<typeof resolved>, flags, log)
}

function addBackends(
  parent: Command,
  words: string,
  makeContext: MakeContext,
  run: (backend: BackendCommand, leaf: Command) => Promise<void>,
): void {
  parent.option('--once', 'end after the first sync')
  parent.addHelpText('after', `\nExample:\n  $ ${words} to-json`)
  for (const backend of backends) {
    const leaf = parent.command(backend.name).description(backend.summary)
    leaf.addHelpText('after', `\nExample:\n  $ ${words} ${backend.name}`)
    backend.addFlags(leaf)
    if (backend.agent) addAgentFlags(leaf, backend.agent)
    // A state file is on this machine already.
    if (backend.agent && parent.parent?.name() !== 'file') addStateCacheFlag(leaf)
    leaf.action(() => (leaf.opts().initOnly ? initOnly(leaf, makeContext) : run(backend, leaf)))
  }
}

export function everyCommand(command: Command): Command[] {
  return [command, ...command.commands.flatMap(everyCommand)]
}

export { CommanderError }
