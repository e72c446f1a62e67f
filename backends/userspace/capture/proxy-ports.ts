import { KpngError } from '@kpng/api'

/** Where proxy ports come from. */
export interface ProxyPorts {
  /** 0: the system shall choose a free one. */
  allocate(): number
  release(port: number): void
}

export interface PortRange {
  readonly base: number
  readonly size: number
}

/** `30000-30100`, `30000+100` or `30000`, as kube-proxy's --proxy-port-range; empty or `0`: no range. */
export function parsePortRange(text: string): PortRange | undefined {
  const trimmed = text.trim()
  if (trimmed === '' || trimmed === '0' || trimmed === '0-0') return undefined
  const [, first = '', sign, second] = /^(\d{1,5})(?:([-+])(\d{1,5}))?$/.exec(trimmed) ?? []
  const base = Number(first)
  const last = sign === undefined ? base : sign === '-' ? Number(second) : base + Number(second)
  if (first === '' || base < 1 || last > 65_535 || last < base) {
    throw new KpngError(
      'usage',
      `The port range "${text}" is wrong; write it as 30000-30999, with ports from 1 to 65535.`,
    )
  }
  return { base, size: last - base + 1 }
}

/** Any free port without a range; else a random one of the range, then the next free one after it. */
export function proxyPorts(range: PortRange | undefined, random: () => number = Math.random): ProxyPorts {
  if (!range) return { allocate: () => 0, release: () => {} }
  const used = new Set<number>()
  return {
    allocate() {
      const start = Math.floor(random() * range.size)
      for (let step = 0; step < range.size; step++) {
        const port = range.base + ((start + step) % range.size)
        if (used.has(port)) continue
        used.add(port)
        return port
      }
      const last = range.base + range.size - 1
      throw new KpngError(
        'unavailable',
        `Every proxy port from ${range.base} to ${last} is used; give a larger --port-range, or none to use any free port.`,
      )
    },
    release: (port) => void used.delete(port),
  }
}
