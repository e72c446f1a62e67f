import { KpngError, nearestNames } from '@kpng/api'
import { Argument, Command, CommanderError, Option } from 'commander'
import { addAgentSocketFlag } from './agent/agent-socket.js'
import { addDashboardFlags } from './agent/dashboard.js'
import { addAgentFlags } from './agent/flags.js'
import { KubeRequests } from './agent/kube-requests.js'
import { addStateCacheFlag, originOf } from './agent/state-cache.js'
import type { BackendCommand } from './backends/backend.js'
import { calloutCommand } from './backends/callout.js'
import { ebpfCommand } from './backends/ebpf.js'
import { iptablesCommand } from './backends/iptables.js'
import { ipvsCommand } from './backends/ipvs.js'
import { jsonCommand } from './backends/json.js'
import { nftCommand } from './backends/nft.js'
import { userspaceLinuxCommand, userspaceWindowsCommand } from './backends/userspace.js'
import { winkernelCommand } from './backends/winkernel.js'
import { addClientFlags, clientOptions } from './client-flags.js'
import type { Context, MakeContext } from './context.js'
import {
  addExamples,
  addExitCodes,
  booleanOption,
  groups,
  hintFor,
  pathOf,
  useLayout,
  withoutFlagsOfParent,
} from './help.js'
import { outputOption, printAnswer } from './output.js'
import { type Flow, runPipeline } from './pipeline.js'
import { addQuestions } from './questions.js'
import { apiSink } from './sinks/api.js'
import { fileSink } from './sinks/file.js'
import { recordSink } from './sinks/record.js'
import { apiSource } from './sources/api.js'
import { fileSource } from './sources/file.js'
import { kubeSource } from './sources/kube.js'
import { replaySource } from './sources/replay.js'
import type { SourceCommand } from './sources/source.js'

// The command tree: names, flags and help. The code of a command is loaded when the command runs.

const sources: readonly SourceCommand[] = [kubeSource, fileSource, apiSource, replaySource]
const sinks = [apiSink, fileSink, recordSink]
const backends: readonly BackendCommand[] = [
  nftCommand,
  iptablesCommand,
  ipvsCommand,
  ebpfCommand,
  userspaceLinuxCommand,
  winkernelCommand,
  userspaceWindowsCommand,
  jsonCommand,
  calloutCommand,
]

/** Programs that are one backend on the view of a kpng API: `kpng local to-json` and `kpng local to-callout` in one word. */
const backendPrograms: Readonly<Record<string, BackendCommand>> = {
  'kpng-json': jsonCommand,
  'kpng-callout': calloutCommand,
}

/**
 * @param words the command line, if only what it names is needed: of the other commands, only names and summaries are made then, because
 *   thousands of flags would delay the start
 */
export function buildProgram(
  name: string,
  version: string,
  makeContext: MakeContext,
  words?: readonly string[],
): Command {
  const isNamed: IsNamed = (command) => words === undefined || words.includes(command)
  const program = useLayout(new Command(name), name)
    .optionsGroup(groups.other)
    .version(version, '--version', 'print the version')
    .optionsGroup(groups.node)
    .option('--node-name <name>', 'name of this node (default: NODE_NAME, else the host name)')
    .optionsGroup(groups.logging)
    .option('-v, --v <level>', 'verbosity: 1 connections, 2 syncs, 3 objects, 4 traffic (default: 0)', withoutEquals)
    .addOption(new Option('--log-format <format>', 'text or json (default: text)').choices(['text', 'json']))
  const backend = backendPrograms[name]
  if (backend) addBackendProgram(program, backend, makeContext)
  else addCommands(program, version, makeContext, isNamed)
  for (const command of everyCommand(program)) {
    if (command.commands.length === 0)
      command.usage(['[flags]', ...command.registeredArguments.map(placeholder)].join(' '))
    else command.usage(`[flags] ${command.name() === 'conformance' ? '[command]' : '<command>'}`).helpCommand(false)
    command.showHelpAfterError(hintFor(command))
  }
  return program
}

/** Whether the command line names a command. */
type IsNamed = (command: string) => boolean

/** `-v=2`, as users of Kubernetes programs write it. */
const withoutEquals = (text: string): string => text.replace(/^=/, '')

const placeholder = (argument: Argument): string => `<${argument.name()}>`

function addCommands(program: Command, version: string, makeContext: MakeContext, isNamed: IsNamed): void {
  program.description(
    'Kubernetes Service proxy, next generation.\n\nA command line names a source, then a sink: kpng <source> [flags] <sink> [flags]',
  )
  addExamples(program, 'kpng playground', 'kpng kube to-local to-nft --cluster-cidr 10.244.0.0/16')
  program.commandsGroup('Sources:')
  for (const source of sources) addSource(program, source, makeContext, isNamed)
  addLocal(program, makeContext, isNamed)
  program.commandsGroup('Questions:')
  addQuestions(program, makeContext)
  program.commandsGroup('Other commands:')
  addPlayground(program, makeContext)
  addPlaygroundAgent(program)
  addCleanup(program, makeContext)
  addConformance(program, makeContext)
  addCompletion(program)
  const versionCommand = program
    .command('version')
    .description('print the version')
    .addOption(outputOption('text', 'json', 'yaml'))
  addHelp(program)
  versionCommand.action(() => {
    const value = { kpng: version, node: process.versions.node, platform: process.platform, arch: process.arch }
    return printAnswer(versionCommand.opts(), { value, text: () => `${version}\n` })
  })
}

function addHelp(program: Command): void {
  const command = program
    .command('help')
    .description('print the help of a command')
    .argument('[command...]', 'its words')
  command.action((words: readonly string[]) => {
    const all = buildProgram(program.name(), program.version() ?? '', () =>
      Promise.reject(new Error('nothing runs here')),
    )
    let found = all
    for (const word of words) {
      const next = found.commands.find((each) => each.name() === word)
      if (!next) {
        const [near] = nearestNames(
          word,
          found.commands.map((each) => each.name()),
        )
        const hint = near === undefined ? '' : ` Did you mean ${near}?`
        throw new KpngError('usage', `"${[pathOf(found), word].join(' ')}" is not a command.${hint}`)
      }
      found = next
    }
    found.outputHelp()
  })
}

function addSource(program: Command, source: SourceCommand, makeContext: MakeContext, isNamed: IsNamed): void {
  const command = program.command(source.name).description(source.summary).optionsGroup(groups.source)
  if (!isNamed(source.name)) return
  source.addFlags(command)
  addExamples(command, `${source.example} to-api`, `${source.example} to-local --node-name node-1 to-json`)
  command.commandsGroup('Sinks:')
  const run = async (sink: Flow, leaf: Command, more: Pick<Context, 'onlyThisNode'> = {}) => {
    const flags = leaf.optsWithGlobals()
    const kube = source.name === 'kube' ? new KubeRequests() : undefined
    const origin = originOf(source.name, flags, kube)
    await runPipeline(source, flags, sink, { ...(await makeContext(flags)), kube, origin, ...more })
  }
  for (const sink of sinks) {
    const leaf = command.command(sink.name).description(sink.summary).optionsGroup(groups.sink)
    sink.addFlags(leaf)
    addExamples(leaf, ...sink.examples.map((flags) => `${source.example} ${sink.name} ${flags}`.trim()))
    leaf.action(() => run((store, context) => sink.run(leaf.optsWithGlobals(), store, context), leaf))
  }
  const local = command.command('to-local').description('pass the view of this node to a backend in this process')
  addBackends(local, `${source.example} to-local`, makeContext, isNamed, (backend, leaf) =>
    run(
      async (store, context) => {
        const { changeSetsOf } = await import('@kpng/core/sinks/local')
        const { runOn } = await import('./backends/run.js')
        await runOn(changeSetsOf(store), backend, leaf.optsWithGlobals(), context)
      },
      leaf,
      { onlyThisNode: true },
    ),
  )
}

function addLocal(program: Command, makeContext: MakeContext, isNamed: IsNamed): void {
  const local = program
    .command('local')
    .description('take the view of this node from a kpng API, and pass it to a backend')
  if (!isNamed('local')) return
  addClientFlags(local, '')
  addBackends(local, 'kpng local --api 10.0.0.5:12090', makeContext, isNamed, (backend, leaf) =>
    runOnApi(backend, leaf, makeContext),
  )
}

async function runOnApi(backend: BackendCommand, leaf: Command, makeContext: MakeContext): Promise<void> {
  const flags = leaf.optsWithGlobals()
  const made = await makeContext(flags)
  const { log, source, nodeName } = made
  const options = await clientOptions(flags, '')
  const { changeSetsOverGrpc, explainOverGrpc } = await import('@kpng/client')
  const askCore = (service: string) => explainOverGrpc(service, { ...options, nodeName })
  const context = { ...made, origin: originOf('local', flags, undefined), askCore }
  const { runOn } = await import('./backends/run.js')
  await runOn(changeSetsOverGrpc({ ...options, log, status: source.watch('core') }), backend, flags, context)
}

function addBackends(
  parent: Command,
  words: string,
  makeContext: MakeContext,
  isNamed: IsNamed,
  run: (backend: BackendCommand, leaf: Command) => Promise<void>,
): void {
  addOnce(parent)
  addExamples(parent, `${words} to-nft`, `${words} --once to-json`)
  parent.commandsGroup('Backends:')
  for (const backend of backends) {
    const leaf = parent.command(backend.name).description(backend.summary).optionsGroup(groups.backend)
    if (!isNamed(backend.name)) continue
    backend.addFlags(leaf)
    if (backend.agent) addAgentFlags(leaf, backend.agent)
    if (backend.agent) addAgentSocketFlag(addDashboardFlags(leaf).optionsGroup(groups.pages))
    // A state file and a record are on this machine already.
    if (backend.agent && !['file', 'replay'].includes(parent.parent?.name() ?? '')) addStateCacheFlag(leaf)
    addExamples(leaf, ...backend.examples.map((flags) => `${words} ${backend.name} ${flags}`.trim()))
    leaf.action(() => (leaf.opts().initOnly ? initOnly(leaf, makeContext) : run(backend, leaf)))
  }
}

const addOnce = (command: Command): Command =>
  command.optionsGroup(groups.backend).option('--once', 'exit after the first sync')

function addBackendProgram(program: Command, backend: BackendCommand, makeContext: MakeContext): void {
  program.description(`${backend.summary}\n\nShort for: kpng local ${backend.name}`)
  addClientFlags(program, '')
  backend.addFlags(addOnce(program))
  addExamples(program, ...backend.examples.map((flags) => `${program.name()} --node-name node-1 ${flags}`.trim()))
  program.action(() => runOnApi(backend, program, makeContext))
}

/** The privileged part alone: no source is read, and nothing is served. */
async function initOnly(leaf: Command, makeContext: MakeContext): Promise<void> {
  const flags = leaf.optsWithGlobals()
  const { resolved, log } = await makeContext(flags)
  const { prepareSystem } = await import('./agent/settings.js')
  await prepareSystem(resolved as NonNullable<typeof resolved>, flags, log)
}

function addConformance(program: Command, makeContext: MakeContext): void {
  const command = program
    .command('conformance')
    .description('test a Service proxy with real packets in a lab of network namespaces (needs root)')
    .optionsGroup('Proxy:')
    .option(
      '--backend <name>',
      'test this backend of kpng: nft, iptables, ipvs, ebpf, userspace or userspace-iptables; or kube-proxy-nftables or kube-proxy-iptables; with --proxy: whose known deviations to accept',
    )
    .option(
      '--proxy <command>',
      'test this command; placeholders: {manifests} {kubeconfig} {api} {node} {clusterCidr} {cgroup} {bpffs}',
    )
    .option('--specialised-proxy <command>', 'a second proxy, for Services with the proxy name {serviceProxyName}')
    .option(
      '--kubeconfig <path>',
      'feed the proxy through this API server (default: manifests in a folder, or the playground for a proxy with {kubeconfig})',
    )
    .optionsGroup('Run:')
    .option('--only <patterns...>', 'only these cases or cells; may be given several times (default: all)')
    .option('--families <families>', 'v4, v6 or both with a comma (default: both)')
    .option('--settle <duration>', 'how long to wait for a wrong cell to become right', '3s')
    .option('--program-timeout <duration>', 'how long the proxy may take to program a round', '15s')
    .option(
      '--chaos <duration>',
      'instead of the cases: let things go wrong for so long, under traffic that is checked',
    )
    .option(
      '--planted [faults]',
      'instead of judging the proxy: lay faults over it, and see whether the kit finds them (default: all)',
    )
    .option('--seed <number>', 'with --chaos: the same number makes the same faults (default: a new one)')
    .option('--whole-machine', 'with --chaos: also faults that all programs of this machine feel; for a VM of your own')
    .optionsGroup('Report:')
    .option('--titles', "also print the titles of Kubernetes' end-to-end tests, and what the run shows of each")
    .option('--json <path>', 'write the report as JSON to this file')
    .option('--junit <path>', 'write the report as JUnit XML to this file')
    .option('--html <path>', 'write the report as a page for people to this file')
  addExamples(
    command,
    'kpng conformance --backend nft --only cluster-ip',
    'kpng conformance --backend nft --junit report.xml',
  )
  command.action(async () => {
    const flags = command.optsWithGlobals()
    const { proveProxy } = await import('./conformance.js')
    await proveProxy(flags, await makeContext(flags))
  })
  addWinkernelConformance(command, makeContext)
  // The kit starts this in each namespace of its lab.
  program
    .command('conformance-agent <name>', { hidden: true })
    .action(async (name: string) => (await import('@kpng/linux/lab')).runAgent(name))
}

/** The kit's lab is one of Linux. On Windows the node itself is tested, with commands of its own. */
function addWinkernelConformance(conformance: Command, makeContext: MakeContext): void {
  const command = conformance
    .command('winkernel')
    .description('test the Windows kernel mode on this node: what HNS is, holds and passes on (needs an administrator)')
    .addArgument(
      new Argument(
        '<step>',
        'probe: read what HNS has; sync: make load balancers and read them back; traffic: connect through them; clean: remove what these made',
      ).choices(['probe', 'sync', 'traffic', 'clean']),
    )
    .optionsGroup('Node under test:')
    .option('--network-name <name>', 'the HNS network of the pods (default: KUBE_NETWORK)')
    .option('--source-vip <ip>', 'overlay networks need it: the source address that pods see')
    .option('--node-ip <ip>', 'the address of this node (default: the first one that others can reach)')
    .option('--pod-ips <ips>', 'two free addresses of the network, for test pods (default: HNS chooses)')
    .addOption(booleanOption('--enable-dsr', 'answers of cluster IPs go to the client directly'))
    .optionsGroup('Traffic:')
    .option('--pods <ips>', 'two pods on this node that run agnhost netexec (default: servers in this process)')
    .option('--wait <duration>', 'how long a load balancer may take to pass traffic', '20s')
    .optionsGroup('Report:')
    .addOption(new Option('-o, --output <format>', 'text, json').choices(['text', 'json']).default('text'))
  withoutFlagsOfParent(command)
  addExamples(
    command,
    'kpng conformance winkernel probe --network-name cbr0',
    'kpng conformance winkernel sync --network-name cbr0 -o json',
  )
  addExitCodes(command, 'no check failed', 'a check failed')
  command.action(async (step: string) => {
    const flags = command.optsWithGlobals()
    const { testWinkernel } = await import('./conformance-winkernel.js')
    await testWinkernel(step, flags, await makeContext(flags))
  })
}

function addCleanup(program: Command, makeContext: MakeContext): void {
  const command = program
    .command('cleanup')
    .description(
      'remove what kpng left on this machine: its rules, and sysctls that still have the value that kpng set',
    )
    .optionsGroup('Cleanup:')
    .option(
      '--backend <name>',
      'only of this backend: nft, iptables, ipvs, ebpf, userspacelin, userspacelin-iptables; on Windows: winuserspace, winkernel (all HNS load balancers)',
    )
    .option(
      '--bpffs <path>',
      "the bpf file system of to-ebpf (default: the node's, also as /host/sys/fs/bpf or that of its first process)",
    )
    .option('--state-file <path>', 'on Windows: the --state-file that to-winuserspace was given')
    .option('--kube-proxy', 'remove what kube-proxy left, in all its modes; kpng stays, except what --backend names')
    .option('--dry-run', 'with --kube-proxy: print the commands instead of running them')
    .option('--force', 'with --kube-proxy: also while kube-proxy runs, or if that cannot be found out')
  addExamples(command, 'kpng cleanup', 'kpng cleanup --kube-proxy --dry-run')
  command.action(async () => {
    const flags = command.optsWithGlobals()
    const { cleanUp } = await import('./cleanup.js')
    await cleanUp(flags, await makeContext(flags))
  })
}

function addPlayground(program: Command, makeContext: MakeContext): void {
  const command = program
    .command('playground')
    .description('try kpng without a cluster: an API server, sample pods and a proxy, on loopback and without root')
    .optionsGroup('Playground:')
    .option('--port <port>', 'port of the API server; 0: any free one', '0')
    .option('--data-dir <folder>', 'keep the objects in this folder (default: they are forgotten)')
    .option('--kubeconfig <path>', 'where to write the kubeconfig (default: a temporary file)')
    .option('--listen <address>', 'where to serve the kpng API', '127.0.0.1:12090')
    .option(
      '--service-cidr <cidr>',
      'range of the cluster IPs, on loopback (default: 127.96.0.0/16, or the next one that no other playground has)',
    )
    .option('--pod-cidr <cidr>', 'range of the pod IPs, on loopback (default: 127.10.0.0/16)')
    .option('--lab <backend>', 'nft: a node and pods in network namespaces, served by the kernel (needs root)')
    .addOption(booleanOption('--demo', 'create a demo Service with three pods, and call it', true))
  addDashboardFlags(command, 'default: 127.0.0.1:12080; false: nowhere')
  addExamples(command, 'kpng playground', 'kpng playground --data-dir ./objects --demo=false')
  command.action(async () => {
    const flags = command.optsWithGlobals()
    const context = await makeContext(flags)
    const { runPlayground } = await import('./playground/run.js')
    await runPlayground(flags, context)
  })
}

function addCompletion(program: Command): void {
  const command = program
    .command('completion')
    .description('print the completion script for a shell; docs/configuration.md says how to load it')
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish', 'powershell']))
  addExamples(command, 'source <(kpng completion bash)', 'kpng completion fish | source')
  command.action(async (shell: string) => {
    const { completionScripts } = await import('./completion-scripts.js')
    process.stdout.write(completionScripts[shell] as string)
  })
}

/** What the playground's lab starts in each of its namespaces. */
function addPlaygroundAgent(program: Command): void {
  program
    .command('playground-agent <name>', { hidden: true })
    .action(async () => (await import('./playground/lab-agent.js')).runLabAgent())
}

export function everyCommand(command: Command): Command[] {
  return [command, ...command.commands.flatMap(everyCommand)]
}

export { CommanderError }
