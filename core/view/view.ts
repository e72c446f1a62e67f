import type { Store } from '../store/index.js'
import { GlobalInfos, GlobalWatch, type GlobalWatchOptions } from './global-watch.js'
import { NodeViews, NodeWatch, type NodeWatchOptions } from './node-watch.js'
import { Turns } from './watch.js'

/** What is worked out from one store, once for all who watch it. Make one per store. */
export class View {
  readonly #store: Store
  readonly #nodeViews = new NodeViews()
  readonly #globalInfos = new GlobalInfos()
  /** For code that does much for many watchers, such as sending. */
  readonly turns: Turns

  constructor(store: Store, turns = new Turns()) {
    this.#store = store
    this.turns = turns
  }

  /** Watches what one node should do. */
  watchNode(options: NodeWatchOptions): NodeWatch {
    return new NodeWatch(this.#store, this.turns, this.#nodeViews, options)
  }

  /** Watches the whole cluster, for relays. */
  watchCluster(options: GlobalWatchOptions = {}): GlobalWatch {
    return new GlobalWatch(this.#store, this.turns, this.#globalInfos, options)
  }
}
