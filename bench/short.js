// The short version of each benchmark: how it is run, and its figures. In all of them lower is better. CPU times are given where the benchmark knows them:
// they say more than wall times on a busy machine.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

const rounded = (value) => Number(Number(value).toPrecision(3))
const pick = (row, names) =>
  Object.fromEntries(Object.entries(names).map(([name, field]) => [name, rounded(row[field])]))

/** The first number that a pattern finds. */
function found(printed, pattern) {
  const match = pattern.exec(printed)
  if (!match) throw new Error(`${pattern} is not in it`)
  return rounded(match[1].replaceAll(',', ''))
}

/** The cells of a row that console.table printed, from its name on. */
function rowOf(printed, name) {
  const line = printed.split('\n').find((one) => one.includes(`'${name}'`))
  if (!line) throw new Error(`there is no row ${name} in it`)
  return line
    .split('│')
    .slice(2, -1)
    .map((cell) => cell.trim().replace(/^'|'$/g, ''))
}

const whyNoNamespaces = () => {
  if (process.platform !== 'linux') return 'It needs Linux.'
  if (process.getuid() !== 0) return 'It needs root, for network namespaces of its own.'
  return spawnSync('unshare', ['--net', 'true']).status === 0 ? undefined : 'This machine allows no network namespaces.'
}

const whyNo = (program) => () =>
  whyNoNamespaces() ??
  (spawnSync(program, ['--version']).error ? `The program ${program} is not installed.` : undefined)

const whyNoBpf = () =>
  whyNoNamespaces() ?? (existsSync('/sys/fs/bpf') ? undefined : 'This kernel has no BPF file system.')

const lastJson = (printed) => JSON.parse(printed.slice(printed.search(/^[[{]/m)))

export const short = {
  nft: {
    program: 'nft/index.js',
    args: ['--sizes', '1000', '--runs', '1', '--json'],
    whyNot: whyNoNamespaces,
    figures: (printed) =>
      pick(lastJson(printed)[0], {
        'load, ms': 'loadMs',
        'load, CPU ms': 'loadCpuMs',
        'change p50, ms': 'p50Ms',
        'change, CPU ms': 'cpuMsPerChange',
        'memory, MB': 'residentMegabytes',
      }),
  },
  iptables: {
    program: 'iptables/index.js',
    args: ['--sizes', '200', '--flavours', 'nft', '--runs', '1', '--changes', '5', '--json'],
    whyNot: whyNo('iptables'),
    figures: (printed) =>
      pick(
        lastJson(printed).find(({ proxy }) => proxy === 'kpng'),
        {
          'load, ms': 'startMs',
          'load, CPU ms': 'startCpuMs',
          'change p50, ms': 'p50Ms',
          'change, CPU ms': 'changeCpuMs',
        },
      ),
  },
  ebpf: {
    program: 'ebpf/tables.js',
    args: ['--services', '1000', '--runs', '1'],
    whyNot: whyNoBpf,
    figures: (printed) => ({
      'load, CPU ms': found(printed, /\| load \|[^|]*\| ([\d.]+) ms/),
      'adopt, CPU ms': found(printed, /\| adopt \|[^|]*\| ([\d.]+) ms/),
      'change, CPU µs': found(printed, /\| change \|[^|]*\| ([\d.]+) µs/),
    }),
  },
  userspace: {
    program: 'userspace/index.js',
    args: ['--rounds', '1', '--seconds', '1', '--idle', '1000'],
    figures: (printed) => {
      const [direct, ours] = ['direct', 'splice'].map((name) => rowOf(printed, name))
      return {
        'CPU s per GB': rounded(ours[2]),
        '1 stream, direct / ours': rounded(direct[1] / ours[1]),
        'new connections, direct / ours': rounded(direct[5] / ours[5]),
        'new connection, CPU ms': rounded(ours[6]),
        'idle connection, kB': found(ours[8], /([\d.]+) kB each/),
      }
    },
  },
  core: {
    program: 'core/fanout.js',
    args: ['--services', '1000', '--watchers', '100', '--changes', '10'],
    figures: (printed) =>
      pick(lastJson(printed.split('\n')[0]), {
        'join 1, ms': 'join 1 (ms)',
        'join all, ms': 'join all (ms)',
        'change p50, ms': 'change p50 (ms)',
        'change, CPU ms': 'CPU/change (ms)',
        'memory, MB': 'RSS (MB)',
      }),
  },
  herd: {
    program: 'core/herd.js',
    args: ['--services', '1000', '--watchers', '200', '--json'],
    figures: (printed) => {
      const [other, same, , restarted] = lastJson(printed)
      return {
        'same server, s': same['all back (s)'],
        'same server, CPU s': same['server CPU (s)'],
        'same server, most bytes': same['most bytes of one'],
        'another server, CPU s': other['server CPU (s)'],
        'restarted, CPU s': restarted['server CPU (s)'],
        'restarted, most bytes': restarted['most bytes of one'],
      }
    },
  },
  kube: {
    program: 'kube/list.js',
    args: ['500', '20', '30'],
    figures: (printed) => {
      const [, peakMb, , blockMs, , cpu, p50Ms] = rowOf(printed, 'kpng, streaming')
      return {
        'peak memory, MB': rounded(peakMb),
        'longest block, ms': rounded(blockMs),
        'CPU s': rounded(cpu),
        'change p50, ms': rounded(p50Ms),
      }
    },
  },
  questions: {
    program: 'questions/index.js',
    args: ['--services', '1000', '--runs', '3'],
    figures: (printed) => ({
      'status command, ms': found(printed, /^status .*command +([\d.]+)/m),
      'status request, ms': found(printed, /^status .*request +([\d.]+)/m),
      'explain request, ms': found(printed, /^explain .*request +([\d.]+)/m),
    }),
  },
  'agent-api': {
    program: 'agent-api/stream.js',
    args: ['--services', '500', '--seconds', '2', '--rounds', '1'],
    figures: (printed) => ({
      'no page, % CPU': found(printed, /^ *0 pages: ([\d.]+) %/m),
      'ten pages, % CPU': found(printed, /^ *10 pages: ([\d.]+) %/m),
    }),
  },
  cluster: {
    program: 'cluster/index.js',
    args: [
      ...['--services', '1000', '--nodes', '100,500', '--relays', '2'],
      ...['--changes', '5', '--rolling-changes', '100', '--rolling-seconds', '6'],
    ],
    figures: (printed) => {
      const rows = printed
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
      const row = (what) => rows.findLast((one) => one.what === what)
      return {
        'one core, change p50, ms': row('one core').p50Ms,
        'one core, change, CPU ms': row('one core').cpuMs,
        'one core, memory, MB': row('one core').rssMb,
        'relays, change p50, ms': row('2 relays').p50Ms,
        'rolling update p99, ms': row('rolling update').p99Ms,
        'zone lost, CPU ms': row('a zone lost').cpuMs,
        'core restarted, CPU ms': row('all come back').cpuMs,
      }
    },
  },
}
