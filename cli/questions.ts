import { existsSync } from 'node:fs'
import { type AgentStatus, KpngError } from '@kpng/api'
import { type Command, Option } from 'commander'
import { type Flags, type MakeContext, textFlag } from './context.js'
import { addExamples, addExitCodes, groups } from './help.js'
import { print } from './print.js'

// Commands that ask a running kpng, or the cluster, and end.

export function addQuestions(program: Command, makeContext: MakeContext): void {
  addStatus(program, makeContext)
  addGet(program, makeContext)
  addExplain(program, makeContext)
  addDoctor(program, makeContext)
  addBundle(program, makeContext)
}

const outputFlag = (...choices: readonly string[]): Option =>
  new Option('-o, --output <format>', choices.join(', ')).choices(choices)

const withSocketFlags = (command: Command): Command =>
  command
    .optionsGroup(groups.source)
    .option(
      '--agent-socket <path>',
      'the socket of a running kpng (default: /run/kpng/agent.sock, else /run/kpng/core.sock)',
    )
    .option('--service-proxy-name <name>', 'ask the kpng that serves Services with this service-proxy-name')

async function ask<Answer>(flags: Flags, path: string): Promise<Answer> {
  const { askAgent } = await import('@kpng/node/agent-api')
  return await askAgent<Answer>(await socketOf(flags), path)
}

async function socketOf(flags: Flags): Promise<string> {
  const { agentSocketPath, coreSocketPath } = await import('@kpng/node/agent-api')
  const given = textFlag(flags, 'agentSocket')
  if (given !== undefined) return given
  const ofNode = agentSocketPath(textFlag(flags, 'serviceProxyName'))
  const asksCore = textFlag(flags, 'node') !== undefined || !existsSync(ofNode)
  return asksCore && existsSync(coreSocketPath()) ? coreSocketPath() : ofNode
}

const asJson = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`

function addStatus(program: Command, makeContext: MakeContext): void {
  const command = withSocketFlags(
    program.command('status').description('say how the kpng on this node is: source, last change, errors, counts'),
  ).addOption(outputFlag('text', 'json').default('text'))
  addExamples(command, 'kpng status', 'kpng status -o json')
  addExitCodes(command, 'the last sync succeeded and the state is up to date', 'it is not so')
  command.action(async () => {
    const flags = command.optsWithGlobals()
    await makeContext(flags)
    const status = await ask<AgentStatus>(flags, '/v1/status')
    const { isHealthy, statusText } = await import('@kpng/node/agent-api')
    print(flags.output === 'json' ? asJson(status) : statusText(status))
    // For scripts: something is wrong, though the question was answered.
    if (!isHealthy(status)) process.exitCode = 1
  })
}

const lists = ['services', 'endpoints', 'nodes', 'frontends', 'changes'] as const

function addGet(program: Command, makeContext: MakeContext): void {
  const command = withSocketFlags(
    program.command('get').description('list what the kpng on this node serves').argument('<what>', lists.join(', ')),
  )
    .option('-n, --namespace <name>', 'only this namespace (default: default)')
    .option('-A, --all-namespaces', 'all namespaces')
    .option('-w, --watch', 'go on, and print what changes')
    .addOption(outputFlag('wide', 'json', 'yaml'))
  addExamples(command, 'kpng get services -A', 'kpng get changes -w')
  addExitCodes(command, 'the list was printed')
  command.action(async (what: string) => {
    const flags = command.optsWithGlobals()
    const { printList } = await import('./get.js')
    await printList(listNamed(what), flags, await socketOf(flags), (await makeContext(flags)).signal)
  })
}

/** As kubectl, which takes the singular and short names too. */
function listNamed(text: string): (typeof lists)[number] {
  const short: Readonly<Record<string, string>> = { svc: 'services', ep: 'endpoints', no: 'nodes' }
  const found = lists.find((list) => [list, list.slice(0, -1), short[text]].includes(text) || short[text] === list)
  if (found) return found
  throw new KpngError('usage', `kpng get knows ${lists.join(', ')}, not "${text}".`)
}

function addExplain(program: Command, makeContext: MakeContext): void {
  const command = withSocketFlags(
    program
      .command('explain')
      .argument(
        '<what>',
        'a Service (web, shop/web), an address (10.96.0.10:80/tcp), a node port (30080), a DNS name or a URL',
      )
      .description('say where connections to a Service, an address or a node port go, and why'),
  )
    .option(
      '--kubeconfig <path>',
      'ask this API server instead of a running kpng, as KUBECONFIG does (default without a kpng: as kubectl)',
    )
    .option('--context <name>', "the kubeconfig's context (default: its current one)")
    .option('-i, --input <path>', 'read a state file, manifests or a record instead')
    .optionsGroup('Question:')
    .addOption(
      new Option(
        '--held [whose]',
        'compare with the rules on this machine: those of kpng, or those of kube-proxy (root)',
      )
        .choices(['kpng', 'kube-proxy'])
        .preset('kpng'),
    )
    .option('-n, --namespace <name>', 'the namespace of the Service (default: default)')
    .option('--from <client>', 'who connects: pod, node, outside or an IP address (default: a pod, and outside)')
    .option(
      '--node <name>',
      'look from this node, with a core, the API server or a file (default: this one, else the first)',
    )
    .option('--probe', 'also open a TCP connection to each endpoint, from this machine (at most 20, 1 s each)')
    .option('--cluster-cidr <cidrs>', "the addresses of pods (default: the Nodes' pod CIDRs)")
    .option('--nodeport-addresses <cidrs>', 'where node ports are open (default: primary)')
    .addOption(outputFlag('text', 'json').default('text'))
  addExamples(command, 'kpng explain 10.96.0.10:53/udp --from 10.244.1.5', 'kpng explain web --held kube-proxy')
  addExitCodes(
    command,
    'every connection that was asked about reaches an endpoint',
    'some do not, or there is a warning',
  )
  command.action(async (what: string) => {
    const flags = command.optsWithGlobals()
    const { explainWith } = await import('./explain.js')
    const found = await explainWith(what, await socketOf(flags), flags, await makeContext(flags))
    const explanation = flags.probe ? await (await import('@kpng/node/agent-api')).probed(found) : found
    const { explanationText } = await import('@kpng/diagnose')
    print(flags.output === 'json' ? asJson(explanation) : explanationText(explanation))
    // For scripts: the question was answered, and somebody who asks does not reach an endpoint.
    if (!explanation.works) process.exitCode = 1
  })
}

const withClusterFlags = (command: Command): Command =>
  command
    .optionsGroup(groups.source)
    .option('--kubeconfig <path>', 'the cluster to look at (default: as kubectl, or the service account of the pod)')
    .option('--context <name>', "the kubeconfig's context (default: its current one)")
    .option('--agent-socket <path>', 'the socket of the kpng to ask (default: every one in /run/kpng)')
    .option('--service-proxy-name <name>', 'look at the Services with this service-proxy-name')

function addDoctor(program: Command, makeContext: MakeContext): void {
  const command = withClusterFlags(
    program.command('doctor').description('check this node and the cluster, and say what to do about each finding'),
  )
    .optionsGroup('Question:')
    .option('--node <name>', 'look at the Services from this node (default: this one, else the first)')
    .addOption(
      new Option('--migrate-from <mode>', "also say what would change without kube-proxy's mode").choices([
        'iptables',
        'ipvs',
        'nftables',
      ]),
    )
    .option('--config <file>', "kube-proxy's configuration (default: the ConfigMap kube-system/kube-proxy)")
    .option('--tls-crt <files>', 'also check these certificates, PEM, with commas')
    .option('--tls-ca <files>', 'also check these CA certificates, PEM, with commas')
    .option('--cluster-cidr <cidrs>', "the addresses of pods (default: the Nodes' pod CIDRs)")
    .option('--nodeport-addresses <cidrs>', 'where node ports are open (default: primary)')
    .addOption(outputFlag('text', 'json').default('text'))
  addExamples(command, 'kpng doctor', 'kpng doctor --migrate-from iptables')
  addExitCodes(command, 'no problem was found', 'there is a problem')
  command.action(async () => {
    const flags = command.optsWithGlobals()
    const { examine } = await import('./doctor.js')
    const { report } = await examine(flags, await makeContext(flags))
    const { hasProblem, reportText } = await import('@kpng/node/doctor')
    print(flags.output === 'json' ? asJson(report) : reportText(report))
    // For scripts: the question was answered, and something does not work.
    if (hasProblem(report)) process.exitCode = 1
  })
}

function addBundle(program: Command, makeContext: MakeContext): void {
  const command = withClusterFlags(
    program.command('bundle').description('write state, rules, metrics and logs to one archive, for a bug report'),
  )
    .optionsGroup('Bundle:')
    .requiredOption('-o, --output <file>', 'the archive to write, a .tar.gz')
    .option('--hash-names', 'replace names of objects and IP addresses by hashes')
    .option('--metrics-address <address>', 'where kpng serves its metrics (default: 127.0.0.1:10249)')
    .option('--unit <name>', 'the systemd unit whose log is taken (default: kpng)')
  addExamples(command, 'kpng bundle -o kpng.tar.gz', 'kpng bundle -o kpng.tar.gz --hash-names')
  command.action(async () => {
    const flags = command.optsWithGlobals()
    const { writeBundle } = await import('./bundle.js')
    await writeBundle(flags, await socketOf(flags), await makeContext(flags))
  })
}
