import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { KpngError, type Log, messageOf } from '@kpng/api'
import { hasCapability } from '@kpng/linux'
import { type AttachedProgram, attachedPrograms, BpfLink, hooks, isBpffs, loadBpf, openPinned } from '@kpng/linux/bpf'
import { isPinName } from '../options.js'

/** Where the node's bpf file system may be: on the node, in a pod that has the node's files, and by its first process. */
const usualPlaces = ['/sys/fs/bpf', '/host/sys/fs/bpf', '/proc/1/root/sys/fs/bpf']

/** A cgroup of the machine's root has this number: a program there serves every socket of the machine. */
const rootCgroup = 1n

export interface PinsOptions {
  /** The bpf file system. Undefined: each of the usual places. */
  readonly bpffs: string | undefined
  /** The name of the folder; undefined: of every kpng. */
  readonly pinName: string | undefined
}

/** The folders in which kpng pinned something. A file system that is mounted twice counts once. */
export function pinFolders({ bpffs, pinName }: PinsOptions): string[] {
  const places = new Map(
    (bpffs === undefined ? usualPlaces : [bpffs]).filter(isBpffs).map((place) => [deviceOf(place), place]),
  )
  return [...places.values()].flatMap((place) =>
    readdirSync(place)
      .filter((name) => (pinName === undefined ? isPinName(name) : name === pinName))
      .map((name) => join(place, name)),
  )
}

const deviceOf = (folder: string): number => statSync(folder).dev

/** Detaches the programs and removes what is pinned. From then on no socket is sent anywhere by them. */
export async function removePins(options: PinsOptions): Promise<string[]> {
  const folders = pinFolders(options)
  const sys = folders.length > 0 ? await loadBpf() : undefined
  for (const folder of folders) {
    for (const hook of Object.keys(hooks)) {
      const fd = sys && existsSync(join(folder, hook)) ? openPinned(sys, join(folder, hook)) : undefined
      if (!sys || fd === undefined) continue
      const link = new BpfLink(sys, fd)
      try {
        link.detach()
      } catch {
        // An older kernel detaches it with its last pin.
      } finally {
        link.close()
      }
    }
    rmSync(folder, { recursive: true, force: true })
  }
  return folders
}

/**
 * Throws if programs of kpng still serve this machine, or if that cannot be known: what is pinned in a file system that is not mounted here
 * stays.
 */
export async function checkNothingAttached(log: Log): Promise<void> {
  let attached: AttachedProgram[]
  try {
    attached = attachedPrograms(await loadBpf())
  } catch (error) {
    if (hasCapability('CAP_SYS_ADMIN')) {
      log.detail(1, 'The kernel does not list eBPF programs', { error: messageOf(error) })
      return
    }
    throw new KpngError(
      'unavailable',
      `Whether eBPF programs of kpng are attached cannot be seen without CAP_SYS_ADMIN; looked in ${usualPlaces.join(', ')}. Run it as root on the node.`,
    )
  }
  const everywhere = attached.filter(({ cgroupId }) => cgroupId === rootCgroup)
  const others = attached.length - everywhere.length
  if (others > 0) log.info('Left eBPF programs of kpng that serve other cgroups', { programs: others })
  if (everywhere.length === 0) return
  const links = everywhere.map(({ linkId, name }) => `${name} (link ${linkId})`).join(', ')
  throw new KpngError(
    'unavailable',
    `eBPF programs of kpng still serve this machine: ${links}. They are pinned in a bpf file system that is not in ${usualPlaces.join(', ')}, or a kpng runs. Give its path with --bpffs, or run "bpftool link detach id ${everywhere[0]?.linkId}" for each.`,
  )
}
