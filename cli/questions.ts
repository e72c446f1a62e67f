import { existsSync } from 'node:fs'
import { type Explanation, KpngError } from '@kpng/api'
import { type Command, Option } from 'commander'
import { KubeRequests } from './agent/kube-requests.js'
import { ask, socketOf, withSocketFlags } from './ask.js'
import { type Context, type Flags, type MakeContext, textFlag } from './context.js'
import { addGet } from './get.js'
import { addExamples, addExitCodes, groups } from './help.js'
import { outputOption, printAnswer } from './output.js'
import { addStatus } from './status.js'

// Commands that ask a running kpng, or the cluster, and end.

export function addQuestions(program: Command, makeContext: MakeContext): void {
  addStatus(program, makeContext)
  addGet(program, makeContext)
  addExplain(program, makeContext)
  addDoctor(program, makeContext)
  addBundle(program, makeContext)
}

function addExplain(program: Command, makeContext: MakeContext): void {
  const command = withSocketFlags(
    program
      .command('explain')
      .argument('<what>', 'a Service (web, shop/web), an address (10.96.0.10:80/tcp) or a node port (30080)')
      .description('say where connections to a Service, an address or a node port go, and why'),
  )
    .option('--kubeconfig <path>', 'ask this API server instead of a running kpng (default without one: as kubectl)')
    .option('--context <name>', "the kubeconfig's context (default: its current one)")
    .option('-i, --input <path>', 'read a state file or manifests instead')
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
    .addOption(outputOption('text', 'json', 'yaml'))
  addExamples(command, 'kpng explain 10.96.0.10:53/udp --from 10.244.1.5', 'kpng explain web --held kube-proxy')
  addExitCodes(command, 'every connection that was asked about reaches an endpoint', 'some do not')
  command.action(async (what: string) => {
    const flags = command.optsWithGlobals()
    const context = await makeContext(flags)
    const found = (await fromAgent(what, flags)) ?? (await fromSource(what, flags, context))
    const explanation = flags.probe ? await (await import('@kpng/node/agent-api')).probed(found) : found
    const { explanationText } = await import('@kpng/dataplane')
    await printAnswer(flags, { value: explanation, text: () => explanationText(explanation) })
    // For scripts: the question was answered, and somebody who asks does not reach an endpoint.
    if (!explanation.works) process.exitCode = 1
  })
}

/** A running kpng knows best, unless somebody wants another view. Undefined if none is to be asked, or none runs. */
async function fromAgent(what: string, flags: Flags): Promise<Explanation | undefined> {
  if (!(await usesAgent(flags))) return undefined
  try {
    return await ask<Explanation>(flags, `/v1/explain?${explainQuery(what, flags)}`)
  } catch (error) {
    // A kpng that was killed leaves its socket behind.
    const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException
    const isGone = code === 'ENOENT' || code === 'ECONNREFUSED'
    if (isGone && flags.held !== 'kpng' && textFlag(flags, 'agentSocket') === undefined) return undefined
    throw error
  }
}

async function usesAgent(flags: Flags): Promise<boolean> {
  const other = ['kubeconfig', 'context', 'input', 'node'].find((flag) => textFlag(flags, flag) !== undefined)
  if (flags.held === 'kpng' && other !== undefined) {
    throw new KpngError('usage', `Only the kpng that runs here knows what it holds. Leave out --held or --${other}.`)
  }
  if (flags.held === 'kpng') return true
  if (flags.held === 'kube-proxy') return false
  if (other !== undefined && other !== 'node') return false
  if (other === 'node' && textFlag(flags, 'agentSocket') === undefined)
    return (await socketOf(flags)).endsWith('core.sock')
  return textFlag(flags, 'agentSocket') !== undefined || existsSync(await socketOf(flags))
}

function explainQuery(what: string, flags: Flags): URLSearchParams {
  const query = new URLSearchParams({ what })
  for (const name of ['namespace', 'from', 'node']) {
    const value = textFlag(flags, name)
    if (value !== undefined) query.set(name, value)
  }
  return query
}

async function fromSource(what: string, flags: Flags, context: Context): Promise<Explanation> {
  const { explainFromSource } = await import('./explain.js')
  const kube = flags.input === undefined ? new KubeRequests() : undefined
  return await explainFromSource(what, flags, { ...context, kube })
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
    .addOption(outputOption('text', 'json', 'yaml'))
  addExamples(command, 'kpng doctor', 'kpng doctor --migrate-from iptables')
  addExitCodes(command, 'no problem was found', 'there is a problem')
  command.action(async () => {
    const flags = command.optsWithGlobals()
    const { examine } = await import('./doctor.js')
    const { report } = await examine(flags, await makeContext(flags))
    const { hasProblem, reportText } = await import('@kpng/node/doctor')
    await printAnswer(flags, { value: report, text: () => reportText(report) })
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
