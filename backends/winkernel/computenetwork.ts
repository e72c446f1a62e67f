import { KpngError, messageOf } from '@kpng/api'
import { type Hcn, HcnError, type HnsVersion } from './hcn.js'

// HCN through computenetwork.dll. koffi is loaded when it is first needed: importing this file does nothing, on any platform.

type Koffi = typeof import('koffi').default
type NativeFunction = ReturnType<ReturnType<Koffi['load']>['func']>
type Kind = 'Network' | 'Endpoint' | 'LoadBalancer'
/** A place for an out parameter. */
type Out<T> = [T | null]
type Handle = unknown

export interface ComputeNetworkOptions {
  /** Where the libraries are. Default: System32, by its absolute path, so that nothing beside the program is loaded instead. */
  readonly folder?: string
}

/** Rejects if this is not Windows, koffi has no build for it, or the machine lacks the Containers feature. */
export async function openComputeNetwork(options: ComputeNetworkOptions = {}): Promise<Hcn> {
  if (process.platform !== 'win32') {
    throw new KpngError('unsupported', `The winkernel backend needs Windows, and this is ${process.platform}.`)
  }
  const { folder = `${process.env.SystemRoot ?? 'C:\\Windows'}\\System32` } = options
  try {
    const { default: koffi } = await import('koffi')
    return hcnOf(new Library(koffi, folder))
  } catch (error) {
    throw new KpngError(
      'unsupported',
      `Windows' Host Compute Network cannot be used: ${messageOf(error)}. ` +
        'Install the Windows feature Containers (Install-WindowsFeature Containers), or use to-winuserspace.',
      { cause: error },
    )
  }
}

const schemaVersion = { Major: 2, Minor: 0 }
/** HNS chooses the ID of what is created with this one. */
const noId = '00000000-0000-0000-0000-000000000000'
const isFailure = (result: number): boolean => result >= 0x80000000
const generalFailure = 0x80004005

/** The filter is JSON in a text of the JSON document. */
const query = (filter?: object): string =>
  JSON.stringify({ SchemaVersion: schemaVersion, ...(filter && { Filter: JSON.stringify(filter) }) })

const document = (settings: object): string => JSON.stringify({ ...settings, SchemaVersion: schemaVersion })

/** A GUID in memory: the first three groups are little-endian, the rest is as written. */
export function guidBytes(text: string): Buffer {
  const bytes = Buffer.from(text.replace(/[{}-]/g, ''), 'hex')
  if (bytes.length !== 16) throw new KpngError('invalid', `HNS gave the ID "${text}", which is not a GUID.`)
  bytes.subarray(0, 4).reverse()
  bytes.subarray(4, 6).reverse()
  bytes.subarray(6, 8).reverse()
  return bytes
}

/** The functions of the library, with their texts and handles freed. */
class Library {
  readonly #functions = new Map<string, NativeFunction>()
  /** Each call is an RPC that may take seconds: they are made on another thread, one after the other. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(koffi: Koffi, folder: string) {
    const free = koffi.load(`${folder}\\combase.dll`).func('void __stdcall CoTaskMemFree(void *memory)')
    // koffi decodes the text and frees it as soon as the call has returned. NULL becomes null.
    const text = koffi.disposable(null as unknown as string, 'str16', free)
    const outText = koffi.out(koffi.pointer(text))
    const outHandle = koffi.out(koffi.pointer('void *'))
    const guid = koffi.pointer('uint8_t')
    const library = koffi.load(`${folder}\\computenetwork.dll`)
    const declare = (name: string, ...parameters: Parameters<typeof library.func>[3]) => {
      this.#functions.set(name, library.func('__stdcall', name, 'int32_t', parameters))
    }
    for (const kind of ['Network', 'Endpoint', 'LoadBalancer']) {
      declare(`HcnEnumerate${kind}s`, 'str16', outText, outText)
      declare(`HcnOpen${kind}`, guid, outHandle, outText)
      declare(`HcnQuery${kind}Properties`, 'void *', 'str16', outText, outText)
      declare(`HcnDelete${kind}`, guid, outText)
      declare(`HcnClose${kind}`, 'void *')
    }
    declare('HcnCreateNetwork', guid, 'str16', outHandle, outText)
    declare('HcnCreateEndpoint', 'void *', guid, 'str16', outHandle, outText)
    declare('HcnCreateLoadBalancer', guid, 'str16', outHandle, outText)
    declare('HcnModifyLoadBalancer', 'void *', 'str16', outText)
    // The older interface of HNS.
    const hnsCall = koffi
      .load(`${folder}\\vmcompute.dll`)
      .func('__stdcall', 'HNSCall', 'int32_t', ['str16', 'str16', 'str16', outText])
    this.#functions.set('HNSCall', hnsCall)
  }

  /** Returns the HRESULT. */
  run(name: string, ...parameters: unknown[]): Promise<number> {
    const call = () =>
      new Promise<number>((resolve, reject) => {
        const done = (error: unknown, result: number) => (error ? reject(error) : resolve(result >>> 0))
        ;(this.#functions.get(name) as NativeFunction).async(...parameters, done)
      })
    const result = this.#last.then(call)
    this.#last = result.catch(() => {})
    return result
  }

  /** A function whose last parameter is the error record. As in hcsshim, a record means failure, whatever the result is. */
  async call(name: string, ...parameters: unknown[]): Promise<void> {
    const record: Out<string> = [null]
    const result = await this.run(name, ...parameters, record)
    if (isFailure(result) || record[0]) throw errorOf(name, result, record[0])
  }

  async withHandle<T>(kind: Kind, open: (handle: Out<Handle>) => Promise<void>, use: (handle: Handle) => Promise<T>) {
    const handle: Out<Handle> = [null]
    await open(handle)
    try {
      return await use(handle[0])
    } finally {
      await this.run(`HcnClose${kind}`, handle[0])
    }
  }
}

function errorOf(call: string, result: number, record: string | null): HcnError {
  const code = isFailure(result) ? result : generalFailure
  if (!record) return new HcnError(call, code)
  try {
    const { Error: text, ErrorCode } = JSON.parse(record) as { Error?: string; ErrorCode?: number }
    return new HcnError(call, isFailure(result) ? result : (ErrorCode ?? code), text)
  } catch {
    return new HcnError(call, code, record)
  }
}

function hcnOf(library: Library): Hcn {
  const opened = <T>(kind: Kind, id: string, use: (handle: Handle) => Promise<T>) =>
    library.withHandle(kind, (handle) => library.call(`HcnOpen${kind}`, guidBytes(id), handle), use)
  const properties = async (kind: Kind, handle: Handle) => {
    const out: Out<string> = [null]
    await library.call(`HcnQuery${kind}Properties`, handle, query(), out)
    return JSON.parse(out[0] as string)
  }
  const ids = async (kind: Kind, filter?: object): Promise<string[]> => {
    const out: Out<string> = [null]
    await library.call(`HcnEnumerate${kind}s`, query(filter), out)
    return JSON.parse(out[0] || '[]')
  }
  /** Others delete too: what is gone between two calls is undefined. */
  const get = (kind: Kind, id: string) =>
    opened(kind, id, (handle) => properties(kind, handle)).catch((error) => {
      if (!HcnError.is(error, 'notFound')) throw error
    })
  const named = async (kind: Kind, name: string) => {
    for (const id of await ids(kind, { Name: name })) {
      const found = await get(kind, id)
      if (found) return found
    }
  }
  const created = (kind: Kind, create: (handle: Out<Handle>) => Promise<void>) =>
    library.withHandle(kind, create, (handle) => properties(kind, handle))
  const remove = (kind: Kind, id: string) =>
    library.call(`HcnDelete${kind}`, guidBytes(id)).catch((error) => {
      if (!HcnError.is(error, 'notFound')) throw error
    })

  /** The older interface of HNS, for what HCN does not have. */
  const hnsCall = async (method: string, path: string, body: string): Promise<unknown> => {
    const out: Out<string> = [null]
    const result = await library.run('HNSCall', method, path, body, out)
    if (isFailure(result)) throw new HcnError('HNSCall', result)
    const answer = JSON.parse(out[0] as string) as { Success: boolean; Error?: string; Output?: unknown }
    if (!answer.Success) throw new HcnError('HNSCall', generalFailure, answer.Error)
    return answer.Output
  }

  return {
    version: () => hnsCall('GET', '/globals/version', '') as Promise<HnsVersion>,
    networks: async () => {
      const found = []
      for (const id of await ids('Network')) found.push(await get('Network', id))
      return found.filter((network) => network !== undefined)
    },
    networkNamed: (name) => named('Network', name),
    createNetwork: (settings) =>
      created('Network', (handle) => library.call('HcnCreateNetwork', guidBytes(noId), document(settings), handle)),
    deleteNetwork: (id) => remove('Network', id),
    // The filter has the name that the field had in schema 1.
    endpointIds: (networkId) => ids('Endpoint', { VirtualNetwork: networkId }),
    endpoint: (id) => get('Endpoint', id),
    endpointNamed: (name) => named('Endpoint', name),
    createEndpoint: (networkId, settings) =>
      opened('Network', networkId, (network) =>
        created('Endpoint', (handle) => {
          const text = document({ HostComputeNetwork: networkId, ...settings })
          return library.call('HcnCreateEndpoint', network, guidBytes(noId), text, handle)
        }),
      ),
    // As hcsshim's HostAttach. Compartment 1 is the machine's own.
    attachToHost: async (endpointId) => {
      const body = JSON.stringify({ SystemType: 'Host', CompartmentId: 1 })
      await hnsCall('POST', `/endpoints/${endpointId}/attach`, body)
    },
    deleteEndpoint: (id) => remove('Endpoint', id),
    loadBalancerIds: () => ids('LoadBalancer'),
    loadBalancer: (id) => get('LoadBalancer', id),
    createLoadBalancer: (settings) =>
      created('LoadBalancer', (handle) =>
        library.call('HcnCreateLoadBalancer', guidBytes(noId), document(settings), handle),
      ),
    modifyLoadBalancer: (id, settings) =>
      opened('LoadBalancer', id, async (handle) => {
        await library.call('HcnModifyLoadBalancer', handle, document(settings))
        return properties('LoadBalancer', handle)
      }),
    deleteLoadBalancer: (id) => remove('LoadBalancer', id),
  }
}
