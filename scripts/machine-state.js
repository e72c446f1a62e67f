// What tests must leave as they found it: the caller's sysctls, rules, links and mounts. Plain JavaScript, as the other npm scripts.

import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** They count, or the kernel changes them by itself. */
const changing = /nf_conntrack_count$|\/neigh\/|\/route\/flush$|tcp_fastopen_key$|\/random\//

/** Namespaces of a lab whose process was killed: the next lab removes them. */
const ofLab = /(?:\/|^network namespace )kpng-\d+-\d+-/

/** By name, what is on this machine and in this network namespace. */
export function machineState() {
  const state = new Map()
  if (process.platform !== 'linux') return state
  const add = (kind, names) => {
    for (const [name, value] of names) state.set(`${kind} ${name}`, value)
  }
  add('sysctl', sysctlsBelow('/proc/sys/net'))
  add(
    'mount',
    linesOf('/proc/self/mountinfo').map((line) => [line.split(' ')[4], '']),
  )
  add(
    'network namespace',
    printed('ip', ['netns', 'list']).map((line) => [line.split(' ')[0], '']),
  )
  add(
    'link',
    printed('ip', ['-o', 'link']).map((line) => [line.split(': ')[1], '']),
  )
  add(
    'address',
    printed('ip', ['-o', 'address']).map((line) => [line.split(/\s+/).slice(1, 4).join(' '), '']),
  )
  add(
    'nftables',
    printed('nft', ['-s', 'list', 'ruleset']).map((line, index) => [`line ${index + 1}`, line]),
  )
  // Asking a family that has no tables would make some.
  for (const [program, names] of [
    ['iptables-legacy-save', '/proc/net/ip_tables_names'],
    ['ip6tables-legacy-save', '/proc/net/ip6_tables_names'],
  ]) {
    if (linesOf(names).length === 0) continue
    const rules = printed(program, []).filter((line) => !line.startsWith('#') && !line.startsWith(':'))
    add(
      program,
      rules.map((line, index) => [`line ${index + 1}`, line]),
    )
  }
  return state
}

/** What differs, as lines. A sysctl that a module brought is no difference. */
export function differences(before, after) {
  const found = []
  for (const [name, value] of after) {
    const was = before.get(name)
    if (was === value || (was === undefined && name.startsWith('sysctl '))) continue
    found.push(was === undefined ? `+ ${name} ${value}`.trimEnd() : `~ ${name}: ${was} → ${value}`)
  }
  for (const [name, value] of before) {
    if (!after.has(name) && !ofLab.test(name)) found.push(`- ${name} ${value}`.trimEnd())
  }
  return found.sort()
}

function* sysctlsBelow(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (changing.test(path)) continue
    if (entry.isDirectory()) yield* sysctlsBelow(path)
    else yield [path, linesOf(path).join(' ')]
  }
}

function linesOf(path) {
  try {
    return readFileSync(path, 'utf8').split('\n').filter(Boolean)
  } catch {
    // It is gone, or may only be written.
    return []
  }
}

function printed(program, args) {
  const { stdout } = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 1 << 28 })
  return (stdout ?? '').split('\n').filter(Boolean)
}
