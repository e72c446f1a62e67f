import { closeSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { BpfMap, type BpfSyscalls, type MapShape, openPinned, pin, socketStorageTypes } from '@kpng/linux/bpf'
import { layoutVersion, type MapName, type Sizes, shapesFor } from '../layout.js'
import type { TableMaps } from '../tables/memory.js'

export type Maps = Readonly<Record<MapName, BpfMap>>

/** The maps of this process, and where they are pinned. */
export interface OpenMaps {
  readonly maps: Maps
  /** Whether an earlier process made them. */
  readonly areAdopted: boolean
  /** Call it when the programs use these maps: those of another layout or size are removed. */
  settle(): void
}

const folderName = `maps-${layoutVersion}`
const isMapFolder = (name: string): boolean => /^maps-\d+(-new)?$/.test(name)

/**
 * Opens the maps that are pinned in a folder. If there are none, or none of this layout and size, it makes new ones beside them: the programs of the
 * earlier process go on with the old ones until they are replaced.
 */
export function openMaps(sys: BpfSyscalls, folder: string, sizes: Sizes): OpenMaps {
  const shapes = shapesFor(sizes)
  const current = join(folder, folderName)
  const adopted = openAll(sys, current, shapes)
  if (adopted) return { maps: adopted, areAdopted: true, settle: () => removeOthers(folder) }
  const fresh = `${current}-new`
  rmSync(fresh, { recursive: true, force: true })
  mkdirSync(fresh, { recursive: true, mode: 0o700 })
  const maps = createMaps(sys, shapes, openPeers(sys, folder, shapes.peers))
  for (const map of Object.values(maps)) pin(sys, map.fd, join(fresh, map.name))
  return {
    maps,
    areAdopted: false,
    settle() {
      rmSync(current, { recursive: true, force: true })
      renameSync(fresh, current)
      removeOthers(folder)
    },
  }
}

/** Makes maps that are not pinned. */
export function createMaps(
  sys: BpfSyscalls,
  shapes: Readonly<Record<MapName, MapShape>>,
  peers: BpfMap | undefined,
): Maps {
  const make = (name: MapName): BpfMap => {
    const shape = shapes[name]
    if (shape.type !== 'socketStorage') return BpfMap.create(sys, name, shape)
    if (peers) return peers
    const types = socketStorageTypes(sys, shape.valueBytes)
    try {
      return BpfMap.create(sys, name, shape, types)
    } finally {
      closeSync(types)
    }
  }
  return Object.fromEntries((Object.keys(shapes) as MapName[]).map((name) => [name, make(name)])) as Record<
    MapName,
    BpfMap
  >
}

/** Undefined if one of them is missing or has another shape. */
function openAll(sys: BpfSyscalls, folder: string, shapes: Readonly<Record<MapName, MapShape>>): Maps | undefined {
  const maps: Partial<Record<MapName, BpfMap>> = {}
  for (const name of Object.keys(shapes) as MapName[]) {
    const map = openMap(sys, join(folder, name), name, shapes[name])
    if (!map) {
      for (const open of Object.values(maps)) open.close()
      return undefined
    }
    maps[name] = map
  }
  return maps as Maps
}

function openMap(sys: BpfSyscalls, path: string, name: string, shape: MapShape): BpfMap | undefined {
  const fd = openPinned(sys, path)
  if (fd === undefined) return undefined
  const map = new BpfMap(sys, fd, name, shape)
  if (map.hasItsShape()) return map
  map.close()
  return undefined
}

/** Sockets that are connected keep the Service that they asked for, whatever becomes of the other maps. */
function openPeers(sys: BpfSyscalls, folder: string, shape: MapShape): BpfMap | undefined {
  for (const name of readdirSync(folder).filter(isMapFolder)) {
    const map = openMap(sys, join(folder, name, 'peers'), 'peers', shape)
    if (map) return map
  }
  return undefined
}

function removeOthers(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (isMapFolder(name) && name !== folderName) rmSync(join(folder, name), { recursive: true, force: true })
  }
}

/** If membarrier(2) is refused, as on kernels with nohz_full. Program runs take microseconds. */
const restMs = 1000

/** The maps as the tables use them. */
export const tableMaps = (sys: BpfSyscalls, maps: Maps, sizes: Sizes): TableMaps => ({
  sizes,
  sets: maps.sets.memory(),
  slots: maps.slots.memory(),
  endpoints: maps.endpoints.memory(),
  frontends: maps.frontends,
  nodeAddresses: maps.nodeAddresses,
  gracePeriod: () => sys.gracePeriod().catch(() => setTimeout(restMs)),
})
