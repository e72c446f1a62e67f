import type { KubeConnection } from '@kpng/core/sources/kube'
import { RequestFeed } from '../request-feed.js'

/** The way to the API server for those who need it beside the source: Events are posted once the source has connected. */
export class KubeRequests {
  /** What was asked so far, the source's requests too. */
  readonly sent = new RequestFeed()
  #ready: (connection: KubeConnection) => void = () => {}
  readonly #connection = new Promise<KubeConnection>((resolve) => {
    this.#ready = resolve
  })

  connected(connection: KubeConnection): void {
    this.#ready(connection)
  }

  /** Tells the cluster from others, once the source has connected. */
  async cluster(): Promise<string> {
    return (await this.#connection).cluster
  }

  async post(path: string, body: object): Promise<void> {
    const connection = await this.#connection
    const { status, body: answer } = await connection.request({ method: 'POST', path, body: JSON.stringify(body) })
    answer.destroy()
    if (status >= 300) throw new Error(`the API server answered ${status}`)
  }
}
