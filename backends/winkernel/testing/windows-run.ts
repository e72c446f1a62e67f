import { writeFileSync } from 'node:fs'
import { endpoint, type FakeCore, ips, type TestService } from '@kpng/client/testing'
import koffi from 'koffi'
import { guidBytes, openComputeNetwork } from '../computenetwork.js'
import { clean, probe, type Report, sync, traffic } from '../conformance/index.js'
import { type Hcn, HcnError } from '../hcn.js'
import { claimLoopback, conformanceOptions, trafficOptions } from './conformance.js'
import { forwarding } from './forwarding.js'
import { goldenText } from './golden.js'
import { makeNetwork, type NetworkType, start } from './node.js'

// The backend with computenetwork.dll, run by Node for Windows. The library is the stub (stub.c). The result goes to the file that is
// named on the command line.

const system = 'C:\\windows\\system32'
const library = koffi.load(`${system}\\computenetwork.dll`)
const free = koffi.load(`${system}\\combase.dll`).func('void __stdcall CoTaskMemFree(void *memory)')
const text = koffi.disposable(null, 'str16', free)
const readState = library.func('__stdcall', 'HcnStubState', 'int32_t', [koffi.out(koffi.pointer(text))])
const writeSettings = library.func('__stdcall', 'HcnStubConfigure', 'int32_t', ['str16'])

interface StubState {
  readonly networks: number
  readonly endpoints: number
  readonly loadBalancers: number
  readonly dangling: number
  readonly openHandles: number
  readonly liveTexts: number
  readonly doubleFrees: number
  readonly badHandles: number
  readonly calls: readonly string[]
}

function state(): StubState {
  const out: [string | null] = [null]
  readState(out)
  return JSON.parse(out[0] as string)
}

/** Sets what the stub does, and forgets the calls so far. */
const configure = (settings: object) => writeSettings(JSON.stringify(settings))
const leaks = () => {
  const { openHandles, liveTexts, doubleFrees, badHandles, dangling } = state()
  return { openHandles, liveTexts, doubleFrees, badHandles, dangling }
}

async function empty(hcn: Hcn): Promise<void> {
  for (const id of await hcn.loadBalancerIds()) await hcn.deleteLoadBalancer(id)
  const network = await hcn.networkNamed('cbr0')
  if (!network) return
  for (const id of await hcn.endpointIds(network.ID)) await hcn.deleteEndpoint(id)
  await hcn.deleteNetwork(network.ID)
}

/** Calls that a caller must tell apart. */
async function answers(hcn: Hcn) {
  const network = await makeNetwork(hcn, 'overlay')
  const codeOf = (work: Promise<unknown>) =>
    work.then(
      () => 'no error',
      (error) => (error instanceof HcnError ? `${error.call} ${error.code.toString(16)}` : String(error)),
    )
  const pod = await hcn.endpointNamed('pod-5')
  const balancer = { HostComputeEndpoints: [pod?.ID ?? ''], Flags: 0 }
  const PortMappings = [{ Protocol: 6, InternalPort: 8080, ExternalPort: 80 }]
  const settings = { ...balancer, FrontendVIPs: ['10.96.0.1'], PortMappings }
  await hcn.createLoadBalancer(settings)
  const unknownId = '01234567-89ab-cdef-0123-456789abcdef'
  const result = {
    version: await hcn.version(),
    podNamed: pod?.IpConfigurations,
    unknown: (await hcn.loadBalancer(unknownId)) ?? 'undefined',
    deletedTwice: await codeOf(hcn.deleteLoadBalancer(unknownId)),
    sameFrontend: await codeOf(hcn.createLoadBalancer(settings)),
    withoutEndpoints: await codeOf(hcn.createLoadBalancer({ ...settings, HostComputeEndpoints: [] })),
    takenIp: await codeOf(hcn.createEndpoint(network.ID, { IpConfigurations: [{ IpAddress: '10.244.1.5' }] })),
    withoutProvider: await codeOf(
      hcn.createEndpoint(network.ID, {
        ...{ IpConfigurations: [{ IpAddress: '10.244.9.9' }], MacAddress: '02-11-0a-f4-09-09', Flags: 1 },
      }),
    ),
    message: await hcn.createLoadBalancer(settings).catch((error) => error.message),
    textWithoutLoss: (await hcn.createEndpoint(network.ID, { Name: 'Grüße, 世界' })).Name,
  }
  await empty(hcn)
  return result
}

const web = (...addresses: string[]): TestService => ({
  name: 'web',
  type: 'LoadBalancer',
  ips: { clusterIps: ips('10.96.0.10'), loadBalancerIps: ips('203.0.113.9') },
  endpoints: addresses.map((ip) => endpoint(ip, { local: ip.startsWith('10.244.1.') })),
})

/** HNS fails at each call of a sync, and the next sync makes it right. Returns the number of calls, or what was wrong. */
async function failingAtEachCall(hcn: Hcn, type: NetworkType, major: number, fault: object) {
  configure({ version: { Major: major, Minor: 4 }, fail: [] })
  await makeNetwork(hcn, type)
  const core: FakeCore = start(hcn, type, {}, web('10.244.1.5', '10.244.2.7'))
  await core.sync()
  const own = type === 'overlay' ? 2 : 0
  let result: number | string | undefined
  for (let after = 0; result === undefined; after++) {
    const pods = after % 2 ? ['10.244.1.5', '10.244.2.7'] : ['10.244.1.6', '10.244.2.8']
    configure({ fail: [{ call: '*', after, ...fault }] })
    await core
      .set(web(...pods))
      .sync()
      .catch(() => {})
    const wasReached = state().calls.length > after
    const { dangling } = state()
    configure({ fail: [] })
    await core.set({ name: `touch-${after}`, endpoints: [] }).sync()
    const { loadBalancers, endpoints } = state()
    const served = await servedIps(hcn)
    const isRight = loadBalancers === 2 && endpoints === 4 + own && served.every((each) => each === pods.join(' '))
    if (!isRight || dangling > 0)
      result = `after ${after}: ${JSON.stringify({ ...state(), calls: 0, served, dangling })}`
    else if (!wasReached) result = after
  }
  await core.stop()
  await empty(hcn)
  return result
}

async function servedIps(hcn: Hcn): Promise<string[]> {
  const served: string[] = []
  for (const id of await hcn.loadBalancerIds()) {
    const found = ((await hcn.loadBalancer(id))?.HostComputeEndpoints ?? []).map((each) => hcn.endpoint(each))
    const addresses = (await Promise.all(found)).map((each) => each?.IpConfigurations?.[0]?.IpAddress)
    served.push(addresses.sort().join(' '))
  }
  return served
}

const isWrite = (call: string) => /Create|Modify|Delete/.test(call)

async function thousand(hcn: Hcn) {
  configure({ version: { Major: 15, Minor: 4 }, fail: [] })
  await makeNetwork(hcn, 'l2bridge')
  const services = Array.from({ length: 1000 }, (_, at) => ({
    name: `s${at}`,
    ips: { clusterIps: ips(`10.96.${at >> 8}.${at & 255}`) },
    endpoints: [endpoint('10.244.1.5', { local: true }), endpoint(`10.244.2.${at % 250}`)],
  }))
  let core = start(hcn, 'l2bridge', {}, ...services)
  await core.sync()
  const { loadBalancers } = state()
  configure({})
  await core.set({ name: 'touch', endpoints: [] }).sync()
  const idle = state().calls
  await core.stop()
  configure({})
  core = start(hcn, 'l2bridge', {}, ...services)
  await core.sync()
  const adopted = state().calls.filter(isWrite)
  await core.stop()
  await empty(hcn)
  return { loadBalancers, idle, adopted }
}

/** What a person with a Windows node runs, on a node in use. */
async function conformance(hcn: Hcn) {
  const results: Record<string, unknown> = {}
  for (const type of ['l2bridge', 'overlay'] as const) {
    configure({ version: { Major: 15, Minor: 4 }, fail: [] })
    await makeNetwork(hcn, type)
    const { networks, endpoints, loadBalancers } = state()
    const options = conformanceOptions(hcn, type)
    const probed = await probe(options)
    const synced = await sync(options)
    const made = state().loadBalancers
    const cleaned = await clean(options)
    const after = state()
    const isAsBefore = after.endpoints === endpoints && after.loadBalancers === loadBalancers && networks === 1
    results[type] = { reports: [probed, synced, cleaned].map(summary), guesses: guessesOf(synced), made, isAsBefore }
    if (type === 'l2bridge') {
      configure({ fail: [{ call: 'HcnCreateLoadBalancer', code: 0x803b000d, times: 1e9 }] })
      results.refusing = summary(await sync(options)).failed
      configure({ fail: [] })
      await clean(options)
    }
    await empty(hcn)
  }
  const loopback = await claimLoopback()
  const options = await trafficOptions(hcn, loopback)
  const path = forwarding(hcn, options.nodeIp)
  results.traffic = summary(await traffic({ ...options, openHcn: async () => path.hcn, testUdp: false }))
  path.close()
  loopback.close()
  for (const network of await hcn.networks()) await hcn.deleteNetwork(network.ID)
  return results
}

const summary = ({ command, checks }: Report) => ({
  command,
  passed: checks.filter(({ verdict }) => verdict === 'passed').length,
  failed: checks.filter(({ verdict }) => verdict === 'failed').map(({ name, sentence }) => `${name}: ${sentence}`),
})

/** Those that the stub answers differently from what `guesses.ts` says. */
const guessesOf = ({ checks }: Report) =>
  checks.filter(({ name, sentence }) => name.startsWith('answer to') && !/as the stub answers|Only an/.test(sentence))

/** Mistakes on purpose: the stub must count each. */
async function mistakes(hcn: Hcn) {
  const { ID } = await makeNetwork(hcn, 'l2bridge')
  const guid = koffi.pointer('uint8_t')
  const outHandle = koffi.out(koffi.pointer('void *'))
  const outMemory = koffi.out(koffi.pointer('void *'))
  const open = library.func('__stdcall', 'HcnOpenNetwork', 'int32_t', [guid, outHandle, outMemory])
  const closeNetwork = library.func('__stdcall', 'HcnCloseNetwork', 'int32_t', ['void *'])
  const closeEndpoint = library.func('__stdcall', 'HcnCloseEndpoint', 'int32_t', ['void *'])
  const enumerate = library.func('__stdcall', 'HcnEnumerateNetworks', 'int32_t', ['str16', outMemory, outMemory])
  const handle: unknown[] = [null]
  open(guidBytes(ID), handle, [null])
  const openHandle = state().openHandles
  closeEndpoint(handle[0])
  const wrongKind = state().badHandles
  closeNetwork(handle[0])
  closeNetwork(handle[0])
  const closedTwice = state().badHandles
  const memory: unknown[] = [null]
  enumerate('{}', memory, [null])
  const leakedText = state().liveTexts
  free(memory[0])
  free(memory[0])
  const freedTwice = state().doubleFrees
  return { openHandle, wrongKind, closedTwice, leakedText, freedTwice, atTheEnd: leaks() }
}

async function main() {
  const hcn = await openComputeNetwork()
  const down = { code: 0x800706b5, times: 1e9, silent: 1 }
  const refusing = { code: 0x80004005, times: 1 }
  const result = {
    platform: process.platform,
    answers: await answers(hcn),
    golden: await goldenText(async (version) => {
      await empty(hcn)
      configure({ version, fail: [] })
      return hcn
    }),
    emptied: await empty(hcn),
    failing: {
      down12: await failingAtEachCall(hcn, 'l2bridge', 12, down),
      down15: await failingAtEachCall(hcn, 'l2bridge', 15, down),
      downOverlay: await failingAtEachCall(hcn, 'overlay', 15, down),
      refusing12: await failingAtEachCall(hcn, 'l2bridge', 12, refusing),
      refusing15: await failingAtEachCall(hcn, 'l2bridge', 15, refusing),
      refusingOverlay: await failingAtEachCall(hcn, 'overlay', 12, refusing),
    },
    thousand: await thousand(hcn),
    conformance: await conformance(hcn),
    leaks: leaks(),
    mistakes: await mistakes(hcn),
  }
  writeFileSync(process.argv[2] as string, JSON.stringify(result))
}

main().then(
  () => process.exit(),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)
