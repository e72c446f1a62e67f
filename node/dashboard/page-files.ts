import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { extname, join } from 'node:path'
import { gzipSync } from 'node:zlib'

/** The files of the live page by name, such as `index.html`: an npm package has them in a folder, a single-file kpng inside itself. */
export type PageFiles = ReadonlyMap<string, Buffer>

/** Reads the files of a folder. Undefined if there is no such folder, or no page in it. */
export async function pageFilesIn(folder: string): Promise<PageFiles | undefined> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  const names = entries.filter((entry) => entry.isFile() && extname(entry.name) in types).map(({ name }) => name)
  if (!names.includes('index.html')) return undefined
  return new Map(await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name))] as const)))
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
}

/** `main-8f3a2b1c.js`: what is in it never changes. */
const hashed = /[.-][0-9A-Za-z_-]{8,}\.(?:js|css|svg|woff2)$/

interface PreparedFile {
  readonly type: string
  readonly etag: string
  readonly plain: Buffer
  /** Undefined if it would not be smaller. */
  readonly gzip: Buffer | undefined
  readonly caching: string
}

const missing =
  'The live page is not part of this kpng: it was built without it. Build it with "npm run build" in the checkout, or install a release of kpng.\n\nThe same facts: kpng status, kpng get services -A, kpng explain <service>.\n'

/** Serves the files of the live page. The path has been checked by nobody yet. */
export class PageServer {
  readonly #files: () => Promise<PageFiles | undefined>
  #prepared: Promise<ReadonlyMap<string, PreparedFile>> | undefined

  /** @param files read when the first page is asked for */
  constructor(files: () => Promise<PageFiles | undefined>) {
    this.#files = files
  }

  async answer(pathname: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'GET' && request.method !== 'HEAD') return sentence(response, 405, 'Use GET.\n')
    this.#prepared ??= this.#prepare()
    const files = await this.#prepared
    if (files.size === 0) {
      // It may be built while kpng runs.
      this.#prepared = undefined
      return sentence(response, pathname === '/' ? 503 : 404, missing)
    }
    const file = files.get(pathname === '/' ? 'index.html' : pathname.slice(1))
    if (!file) return sentence(response, 404, `There is no page ${pathname}.\n`)
    const { type, etag, plain, gzip, caching } = file
    const isGzip = gzip !== undefined && /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))
    const headers = { ETag: etag, 'Cache-Control': caching, Vary: 'Accept-Encoding' }
    if (request.headers['if-none-match'] === etag) {
      response.writeHead(304, headers).end()
      return
    }
    const body = isGzip ? gzip : plain
    response.writeHead(200, {
      ...headers,
      'Content-Type': type,
      'Content-Length': body.length,
      ...(isGzip ? { 'Content-Encoding': 'gzip' } : {}),
    })
    response.end(request.method === 'HEAD' ? undefined : body)
  }

  async #prepare(): Promise<ReadonlyMap<string, PreparedFile>> {
    const files = await this.#files()
    return new Map([...(files ?? [])].map(([name, plain]) => [name, prepared(name, plain)]))
  }
}

function prepared(name: string, plain: Buffer): PreparedFile {
  const gzip = gzipSync(plain, { level: 9 })
  return {
    type: types[extname(name)] ?? 'application/octet-stream',
    etag: `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`,
    plain,
    gzip: gzip.length < plain.length ? gzip : undefined,
    caching: hashed.test(name) ? 'public, max-age=31536000, immutable' : 'no-cache',
  }
}

function sentence(response: ServerResponse, code: number, text: string): void {
  response.writeHead(code, { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-store' }).end(text)
}
