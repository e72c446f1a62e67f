import { spawn } from 'node:child_process'
import { KpngError, messageOf, type NodeRow, nearestNames, printableLines } from '@kpng/api'
import { outputOf } from '@kpng/linux'
import { Command } from 'commander'
import type { Flags } from './context.js'
import { bareNode, fleetPrinted, isWell } from './fleet.js'
import { outputOption, printAnswer } from './output.js'

// `kubectl kpng`: asks the kpng pod of a node, or those of all nodes.

const usage = `Usage: kubectl kpng [flags] status|get|explain|doctor …

Runs kpng status, get, explain or doctor in the kpng pod of a node. "status --all" and "get nodes" ask the pods of all nodes.

Flags, before the command:
  --node NAME         the node (default: the only one with a kpng pod)
  --context NAME      of the kubeconfig, as for kubectl
  --kubeconfig PATH   as for kubectl

Examples:
  kubectl kpng status --all
  kubectl kpng --node worker-1 status
  kubectl kpng --node worker-1 explain web -n shop
`

const questions = ['status', 'get', 'explain', 'doctor']
const label = 'app.kubernetes.io/name=kpng'

/** A command line: what is for the plugin, what is for kubectl, and what kpng is asked. */
export interface PluginArguments {
  readonly node: string | undefined
  readonly kubectl: readonly string[]
  readonly question: readonly string[]
}

export function parsePluginArguments(args: readonly string[]): PluginArguments {
  let node: string | undefined
  const kubectl: string[] = []
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] as string
    if (questions.includes(arg)) return { node, kubectl, question: args.slice(at) }
    const [, name, inline] = /^--(node|context|kubeconfig)(?:=(.*))?$/s.exec(arg) ?? []
    if (name === undefined)
      throw new KpngError('usage', `"${arg}" is not status, get, explain, doctor or a flag before them.`)
    const value = inline ?? args[++at]
    if (!value) throw new KpngError('usage', `--${name} needs a value.`)
    if (name === 'node') node = value
    else kubectl.push(`--${name}=${value}`)
  }
  throw new KpngError('usage', 'Say what to ask: status, get, explain or doctor.')
}

export interface Pod {
  readonly namespace: string
  readonly name: string
  readonly node: string
  /** The one whose kpng serves the node. */
  readonly container: string
  /** How kpng is called there. */
  readonly program: string
  /** Empty: it is the default proxy of the cluster. */
  readonly serviceProxyName: string
}

interface PodList {
  readonly items?: readonly {
    readonly metadata: { readonly name: string; readonly namespace: string }
    readonly spec: { readonly nodeName?: string; readonly containers: readonly Container[] }
    readonly status?: { readonly phase?: string }
  }[]
}
interface Container {
  readonly name: string
  readonly command?: readonly string[]
  readonly args?: readonly string[]
}

/** The running kpng pods that serve a node. A core serves others, and is not one of them. */
export function podsIn(list: PodList): Pod[] {
  return (list.items ?? []).flatMap(({ metadata, spec, status }) => {
    const serving = spec.containers.find(({ args = [] }) => args.includes('to-local') || args.includes('local'))
    if (!serving || spec.nodeName === undefined || status?.phase !== 'Running') return []
    const { namespace, name } = metadata
    const { command = ['kpng'], args = [] } = serving
    return {
      ...{ namespace, name, node: spec.nodeName, container: serving.name },
      ...{ program: command[0] ?? 'kpng', serviceProxyName: serviceProxyNameIn(args) ?? '' },
    }
  })
}

/** `--service-proxy-name=NAME`, or the word after the flag. */
function serviceProxyNameIn(words: readonly string[]): string | undefined {
  const flag = '--service-proxy-name'
  const at = words.findIndex((word) => word === flag || word.startsWith(`${flag}=`))
  return at < 0 ? undefined : words[at] === flag ? words[at + 1] : words[at]?.slice(flag.length + 1)
}

/** The words that ask a pod. A specialised proxy is known by its name, so the question must have it. */
export function wordsFor({ program, serviceProxyName }: Pod, question: readonly string[]): string[] {
  const isNamed = serviceProxyName === '' || serviceProxyNameIn(question) !== undefined
  return [program, ...question, ...(isNamed ? [] : [`--service-proxy-name=${serviceProxyName}`])]
}

/** The pods of the proxy that a question names. Without a name: of the default proxy, or of any if there is none. */
export function podsFor(pods: readonly Pod[], question: readonly string[]): readonly Pod[] {
  const wanted = serviceProxyNameIn(question)
  const found = pods.filter(({ serviceProxyName }) => serviceProxyName === (wanted ?? ''))
  return found.length === 0 && wanted === undefined ? pods : found
}

export function choosePod(pods: readonly Pod[], node: string | undefined): Pod {
  const nodes = [...new Set(pods.map((pod) => pod.node))].sort()
  const listed = `${nodes.slice(0, 10).join(', ')}${nodes.length > 10 ? ' …' : ''}`
  if (pods.length === 0)
    throw new KpngError('unavailable', `No running pod with the label ${label} serves a node. Is kpng installed?`)
  if (node === undefined && nodes.length > 1) throw new KpngError('usage', `Say which node with --node: ${listed}.`)
  const found = pods.find((pod) => pod.node === (node ?? nodes[0]))
  if (found) return found
  const [near] = nearestNames(node ?? '', nodes)
  const hint = near === undefined ? `Nodes with one: ${listed}.` : `Did you mean ${near}?`
  throw new KpngError('usage', `The node "${node}" has no running kpng pod. ${hint}`)
}

/** Resolves with the exit code. */
export async function kubectlPlugin(args: readonly string[]): Promise<number> {
  if (args.length === 0 || ['-h', '--help', 'help'].includes(args[0] as string)) {
    process.stdout.write(usage)
    return 0
  }
  try {
    const { node, kubectl, question } = parsePluginArguments(args)
    const get = [...kubectl, 'get', 'pods', '--all-namespaces', `--selector=${label}`, '--output=json']
    const list = JSON.parse(await outputOf('kubectl', get, { limitMs: 60_000 })) as PodList
    const pods = podsFor(podsIn(list), question)
    const everywhere = node === undefined ? fleetQuestion(question) : undefined
    if (everywhere) return await askAll(pods, kubectl, everywhere)
    const pod = choosePod(pods, node)
    if (question[0] === 'doctor') console.error(`${whatAPodHides} (node ${pod.node}, pod ${pod.namespace}/${pod.name})`)
    return await passedOn('kubectl', [...kubectl, ...execIn(pod, wordsFor(pod, question))])
  } catch (error) {
    console.error(`kubectl kpng: ${printableLines(messageOf(error))}`)
    return error instanceof KpngError && error.code === 'usage' ? 2 : 3
  }
}

/** A check that finds nothing there proves less than on the node. */
const whatAPodHides =
  'Note: kpng doctor looks from inside the pod. Processes, files and programs of the node that the container does not have are not seen; run it on the node for those.'

const execIn = ({ namespace, name, container }: Pod, words: readonly string[]): string[] => [
  ...['exec', `--namespace=${namespace}`, `--container=${container}`, name, '--'],
  ...words,
]

/** The flags of a question about all nodes: `status --all` or `get nodes`. Undefined: it is about one node. */
function fleetQuestion(question: readonly string[]): Flags | undefined {
  const [what, ...rest] = question
  const isFleet = what === 'status' ? rest.includes('--all') : what === 'get' && /^no(?:des?)?$/.test(rest[0] ?? '')
  if (!isFleet) return undefined
  const command = new Command().exitOverride().configureOutput({ writeErr: () => {} })
  command.argument('[words...]').option('--all').option('--service-proxy-name <name>')
  command.addOption(outputOption('text', 'wide', 'name', 'json', 'yaml'))
  try {
    const flags = command.parse(rest, { from: 'user' }).opts()
    if (command.args.length <= (what === 'get' ? 1 : 0)) return flags
  } catch (error) {
    throw new KpngError('usage', `${messageOf(error)} About all nodes, only -o and --service-proxy-name work.`)
  }
  throw new KpngError('usage', 'All nodes are listed. For one of them, give --node before the command.')
}

/** So many pods are asked at the same time, and each may take so long. */
const askedAtOnce = 10
const podLimitMs = 20_000

/** Asks the pod of every node how it is. A node that does not answer is listed too. */
async function askAll(pods: readonly Pod[], kubectl: readonly string[], flags: Flags): Promise<number> {
  if (pods.length === 0) choosePod(pods, undefined)
  const waiting = [...pods].sort((a, b) => (a.node < b.node ? -1 : 1)).entries()
  const nodes: NodeRow[] = []
  const askOne = async (pod: Pod): Promise<NodeRow> => {
    try {
      const words = [...kubectl, ...execIn(pod, wordsFor(pod, ['get', 'nodes', '--output=json']))]
      const answer = JSON.parse(await outputOf('kubectl', words, { limitMs: podLimitMs })) as { nodes: NodeRow[] }
      return answer.nodes.find(({ isLocal }) => isLocal) ?? bareNode(pod.node, { state: 'unknown' })
    } catch (error) {
      return bareNode(pod.node, { state: 'unknown', lastError: messageOf(error) })
    }
  }
  const worker = async () => {
    for (const [index, pod] of waiting) nodes[index] = await askOne(pod)
  }
  await Promise.all(Array.from({ length: askedAtOnce }, worker))
  await printAnswer(flags, await fleetPrinted(nodes))
  if (nodes.some(({ state }) => state === 'unknown')) return 3
  return nodes.every(isWell) ? 0 : 1
}

/** Runs a program on this terminal. Ctrl-C reaches it too, so this process waits for its end. */
function passedOn(program: string, args: readonly string[]): Promise<number> {
  process.on('SIGINT', () => {})
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: 'inherit', windowsHide: true })
    child.on('error', reject)
    child.on('exit', (code) => resolve(code ?? 1))
  })
}
