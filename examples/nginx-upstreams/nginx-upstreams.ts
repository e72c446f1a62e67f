// A proxier of its own for the Services that carry the label service.kubernetes.io/service-proxy-name: nginx. It keeps a file of
// nginx `upstream` blocks up to date, one per port, and nginx does the rest: TLS, paths, limits.
//
//   nginx-upstreams [--file <path>] [--context http|stream] [flags of every client] [-- nginx -c /etc/nginx/nginx.conf]
import { changeSetsOverGrpc, KpngError, optionsFromArguments, runBackend, stopOnSignals } from '@kpng/client'
import { NginxUpstreams } from './upstreams.js'

/** Takes a flag with its value out of the arguments; the rest is for the client. */
function take(args: string[], flag: string, otherwise: string): string {
  const place = args.indexOf(flag)
  return place < 0 ? otherwise : (args.splice(place, 2)[1] ?? '')
}

const all = process.argv.slice(2)
const end = all.includes('--') ? all.indexOf('--') : all.length
const args = all.slice(0, end)
const [program = 'nginx', ...usual] = all.slice(end + 1)
const file = take(args, '--file', '/etc/nginx/kpng-upstreams.conf')
const context = take(args, '--context', 'http')
if (context !== 'http' && context !== 'stream') throw new KpngError('usage', '--context is either http or stream.')

const options = optionsFromArguments(args)
const { log, nodeName } = options
await runBackend(new NginxUpstreams({ file, context, nginx: [program, ...usual], log }), {
  changeSets: changeSetsOverGrpc(options),
  nodeName,
  log,
  signal: stopOnSignals(log),
  // A reload starts new worker processes. What changes within a second is loaded once.
  minSyncIntervalMs: 1000,
})
