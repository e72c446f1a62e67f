import { type Command, Option } from 'commander'
import { socketOf, withSocketFlags } from './ask.js'
import type { MakeContext } from './context.js'
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
    .addOption(outputOption('text', 'json', 'yaml'))
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
    await printAnswer(flags, { value: explanation, text: () => explanationText(explanation) })
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
    .option('-i, --input <path>', 'look at the Services of a state file, manifests or a record instead')
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
  addExamples(command, 'kpng doctor -i manifests.yaml', 'kpng doctor --migrate-from iptables')
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
