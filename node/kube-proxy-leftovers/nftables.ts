import { nftTables } from './names.js'
import { type FindLeftovers, look } from './removal.js'

/** Of mode nftables: its tables. */
export const findNftables: FindLeftovers = async (surroundings) => {
  const listed = (await look(surroundings, 'nft', ['list', 'tables'])) ?? ''
  return [...listed.matchAll(/^table (\S+ \S+)/gm)].flatMap(([, table]) =>
    table !== undefined && nftTables.has(table)
      ? { what: 'table', fields: { table }, program: 'nft', args: ['delete', 'table', ...table.split(' ')] }
      : [],
  )
}
