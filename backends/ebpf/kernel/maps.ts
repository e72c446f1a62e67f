import { closeSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { BpfMap, type BpfSyscalls, type MapShape, openPinned, pin, socketStorageTypes } from '@kpng/linux/bpf'
import { layoutVersion, type MapName, type Sizes, shapesFor } from '../layout.js'
import type { TableMaps } from '../tables/memory.js'

export type Maps = Readonly<Record<MapName, BpfMap>>

const folderName = `maps-${layoutVersion}`
const isMapFolder = (name: string): boolean => /^maps-\d+(-new)?$/.test(name)

/**
 * The maps that are pinned in a folder. If there are none of this layout and size, new ones are made: the programs of an earlier process go on
 * with the old ones until they are replaced.
 */
export class PinnedMaps {
  readonly maps: Maps
  /** Whether an earlier process made them. */
  readonly areAdopted: boolean
  readonly #sys: BpfSyscalls
  readonly #folder: string
  #isSettled: boolean

  constructor(sys: BpfSyscalls, folder: string, sizes: Sizes) {
    this.#sys = sys
    this.#folder = folder
    const shapes = shapesFor(sizes)
    const adopted = openAll(sys, this.#current, shapes)
    this.areAdopted = this.#isSettled = adopted !== undefined
    this.maps = adopted ?? createMaps(sys, shapes, openPeers(sys, folder, shapes.peers))
  }

  /**
   * Call it when the programs use these maps: they are pinned, and those of another layout or size are removed. May be called again: pins
   * that are gone are made again.
   */
  settle(): void {
    if (!this.#isSettled) {
      // All or none: a process that is killed here leaves no folder with maps of two kinds.
      const fresh = `${this.#current}-new`
      rmSync(fresh, { recursive: true, force: true })
      this.#pinIn(fresh)
      rmSync(this.#current, { recursive: true, force: true })
      renameSync(fresh, this.#current)
      this.#isSettled = true
    }
    this.#pinIn(this.#current)
    for (const name of readdirSync(this.#folder)) {
      if (isMapFolder(name) && name !== folderName) rmSync(join(this.#folder, name), { recursive: true, force: true })
    }
  }

  /** A sentence if pins are gone. */
  drift(): string | undefined {
    const missing = Object.keys(this.maps).find((name) => !existsSync(join(this.#current, name)))
    return missing === undefined ? undefined : `the pin of the map ${missing} is gone`
  }

  close(): void {
    for (const map of Object.values(this.maps)) map.close()
  }

  get #current(): string {
    return join(this.#folder, folderName)
  }

  #pinIn(folder: string): void {
    if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 })
    for (const { name, fd } of Object.values(this.maps)) {
      if (!existsSync(join(folder, name))) pin(this.#sys, fd, join(folder, name))
    }
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
