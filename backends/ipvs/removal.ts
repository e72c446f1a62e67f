import { type Cidr, CidrSet, type Log } from '@kpng/api'
import { removeDummyInterface } from '@kpng/linux'
import { Ipvs } from './ipvs-netlink.js'
import { isOwnTable, mainName, type Names, namesOf, tableFamily } from './names.js'
import { applyRules, keysInTables, tableNames } from './nft.js'

export interface RemovalOptions {
  /** Whose; undefined: of every kpng. */
  readonly only: Names | undefined
  readonly excludeCidrs: readonly Cidr[]
  readonly log: Log
}

/**
 * Removes tables, virtual servers and the interface of kpng, and nothing else. The tables say which virtual servers are kpng's, so
 * without a table nothing is removed: kube-ipvs0 may be kube-proxy's.
 */
export async function removeAll({ only, excludeCidrs, log }: RemovalOptions): Promise<void> {
  const tables = (await tableNames()).filter(({ name }) => (only ? name === only.tableName : isOwnTable(name)))
  if (tables.length === 0) return
  const names = new Set(tables.map(({ name }) => name))
  const keys = await keysInTables((name) => names.has(name))
  await removeServers(keys, new CidrSet(excludeCidrs), log)
  for (const name of names) {
    const interfaceName = interfaceOf(name, only)
    if (interfaceName && (await removeDummyInterface(interfaceName)))
      log.detail(1, 'Removed the interface', { interface: interfaceName })
  }
  await applyRules(tables.map(({ family, name }) => `delete table ${tableFamily[family]} ${name}\n`).join(''))
  log.detail(1, 'Removed the tables of kpng', { tables: [...names].join() })
}

/** The name of a specialised proxier is in the name of its table. */
const interfaceOf = (tableName: string, only: Names | undefined): string | undefined =>
  only?.interfaceName ??
  namesOf(tableName === 'kpng-ipvs' ? mainName : tableName.slice('kpng-ipvs-'.length)).interfaceName

async function removeServers(keys: ReadonlySet<string>, excluded: CidrSet, log: Log): Promise<void> {
  if (keys.size === 0) return
  const ipvs = await Ipvs.open()
  try {
    const own = (await ipvs.servers()).filter(
      ({ key, address }) => keys.has(key) && !(address && excluded.has(address)),
    )
    await ipvs.change(own.map((server) => ({ do: 'deleteService', server })))
    log.detail(1, 'Removed virtual servers', { count: own.length })
  } finally {
    ipvs.close()
  }
}
