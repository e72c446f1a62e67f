import type { KubeConnection } from '@kpng/core/sources/kube'
import { RequestFeed } from '../request-feed.js'

/** Access to the API server beside the source: Events are posted once the source has connected. */
export class KubeRequests {
  /** The requests so far, those of the source included. */
  readonly sent = new RequestFeed()
  #ready: (connection: KubeConnection) => void = () => {}
  readonly #connection = new Promise<KubeConnection>((resolve) => {
    this.#ready = resolve
  })

  connected(connection: KubeConnection): void {
    this.#ready(connection)
  }

  /** Once the source has connected. */
  get connection(): Promise<KubeConnection> {
    return this.#connection
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
