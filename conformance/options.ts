import { families as allFamilies, type Family, KpngError } from '@kpng/api'
import type { Case } from './cases/case.js'
import { cases as allCases } from './cases/index.js'
import type { Deviations } from './deviations/deviation.js'
import { deviationsOf } from './deviations/index.js'
import type { LaidOver } from './planted/laid-over.js'
import { casesIn, casesNamed } from './runner/rounds.js'

export interface ConformanceOptions {
  /**
   * The command of the proxy under test, run in the namespace of the lab's node-a. Placeholders: `{node}` its node name,
   * `{clusterCidr}` the ranges of pods, `{manifests}` the folder of manifests, `{kubeconfig}` a kubeconfig that works there,
   * `{api}` the gRPC address of a core that has the objects, `{cgroup}` the cgroup of the node's processes and pods, `{bpffs}` a folder for a bpf
   * file system.
   */
  readonly proxy: readonly string[]
  /**
   * The command of a specialised proxy that runs in the same namespace, beside the proxy under test. It serves the Services with the
   * label `service.kubernetes.io/service-proxy-name: conformance`, headless ones too. The same placeholders, and
   * `{serviceProxyName}`. Default: none, and the cases that need one are skipped.
   */
  readonly specialised?: readonly string[] | undefined
  /** The command of a core that serves the objects at `{api}`, with the same placeholders. It runs if a proxy has `{api}`. Default: none. */
  readonly core?: readonly string[] | undefined
  /** How the proxy gets its objects: from the folder `{manifests}`, or from the API server of a kubeconfig. */
  readonly feed: 'manifests' | { readonly kubeconfig: string }
  /** Patterns of case or cell ids; a case that matches is run as a whole. Default: every case. */
  readonly only?: readonly string[]
  /** Whose cells are measured; a proxy must serve each of them to be waited for. Default: both. */
  readonly families?: readonly Family[]
  /** Whose named deviations count: one of `backendNames`. Default: nobody's. */
  readonly backend?: string
  /** Prints every cell. Default: those that are not right. */
  readonly showAll?: boolean
  /** Prints what the run shows of each title of Kubernetes' end-to-end tests, too. */
  readonly titles?: boolean
  /** Where to write the report as JSON. */
  readonly json?: string
  /** Where to write it as JUnit XML. */
  readonly junit?: string
  /** Where to write it as a page for people. */
  readonly html?: string
  /** How long the proxy may take to program a round, in milliseconds. Default 15000. */
  readonly programTimeoutMs?: number
  /** How long, after that, a wrong cell may still become right, in milliseconds. Default 3000. */
  readonly settleMs?: number
  /** How many connections are made once to each kind of address, with each protocol and family, when its cells are right. Default 200. */
  readonly connections?: number
  /** The cases. Default: the kit's own. */
  readonly cases?: readonly Case[]
  /** A fault that is laid over the proxy, to see whether the kit finds it. Default: none. */
  readonly fault?: LaidOver
  /** What starts an agent of the lab; its name and role are added. Default: Node, with the program of this package. */
  readonly agentCommand?: readonly string[]
  /** Gets the lines for the terminal. */
  readonly log: (line: string) => void
  /** Stops the run; the lab is removed. Default: SIGINT and SIGTERM do. */
  readonly signal?: AbortSignal
}

export interface Settings extends ConformanceOptions {
  readonly cases: readonly Case[]
  readonly families: readonly Family[]
  readonly deviations: Deviations
  readonly programTimeoutMs: number
  readonly settleMs: number
  readonly connections: number
}

/** The options, checked and with their defaults. */
export function settingsOf(options: ConformanceOptions): Settings {
  const {
    proxy,
    only = [],
    cases = allCases,
    families = allFamilies,
    programTimeoutMs = 15_000,
    settleMs = 3000,
    connections = 200,
  } = options
  if (proxy.length === 0) throw new KpngError('usage', 'There is no proxy command. Give one, such as kpng … to-nft.')
  if (options.feed === 'manifests' && !proxy.some((part) => /\{(manifests|api)\}/.test(part))) {
    options.log(
      'The proxy command has no {manifests}: if the proxy does not know the folder of manifests, it gets no objects.',
    )
  }
  const named = only.length === 0 ? cases : casesNamed(cases, only)
  if (named.length === 0) throw new KpngError('usage', `No case or cell is called ${only.join(' or ')}.`)
  return {
    ...options,
    cases: casesIn(options.feed === 'manifests' ? named : named.map(withoutRefused), families),
    families,
    deviations: deviationsOf(options.backend),
    programTimeoutMs,
    settleMs,
    connections,
  }
}

/** A case whose objects an API server would refuse stays in the table, where it is skipped, without them. */
const withoutRefused = (one: Case): Case =>
  one.manifestsOnly === undefined ? one : { ...one, steps: one.steps.map((step) => ({ ...step, objects: [] })) }
