import type { LiveNode } from '@kpng/api'
import { nodes, status } from '../data/cluster.js'
import { agentClock } from '../data/connection.js'
import { count, counted, duration } from '../format.js'
import { VirtualList } from '../parts/virtual-list.js'
import { nodeHref } from '../route.js'
import { Pipeline } from './pipeline.js'

/** The nodes of a core: first those that are behind, then those that are not connected. */
export function NodesPage() {
  const revision = status.value?.core?.revision ?? 0
  const list = [...nodes.value.values()].sort(
    (a, b) =>
      lag(b) - lag(a) ||
      Number(isConnected(a)) - Number(isConnected(b)) ||
      a.name.localeCompare(b.name, 'en', { numeric: true }),
  )
  return (
    <main class="page nodes">
      <h1 class="sr">Nodes</h1>
      <Pipeline />
      <section class="panel list" aria-label="Nodes">
        <header class="bar">
          <h2>{counted(list.length, 'node')}</h2>
          <span class="soft">the state is at revision {count(revision)}</span>
        </header>
        {list.length === 0 ? (
          <div class="nothing">
            <p>
              <b>No node is connected.</b>
            </p>
            <p class="soft">A node that connects shows up here:</p>
            <code>kpng local --api https://… to-nft</code>
          </div>
        ) : (
          <VirtualList
            id="nodes"
            label="Nodes"
            items={list}
            rowHeight={40}
            row={(node) => <NodeRow node={node} revision={revision} />}
          />
        )}
      </section>
    </main>
  )
}

const lag = ({ behindSince }: LiveNode): number =>
  behindSince === undefined ? 0 : agentClock.peek() - Date.parse(behindSince)

const isConnected = ({ watchers }: LiveNode): boolean => watchers > 0

function NodeRow({ node, revision }: { readonly node: LiveNode; readonly revision: number }) {
  const { name, watchers, behindSince } = node
  return (
    <a class="node-row" href={nodeHref(name)}>
      <span aria-hidden="true" class={isConnected(node) && behindSince === undefined ? 'dot' : 'dot off'} />
      <b>{name}</b>
      <span class="soft num">{isConnected(node) ? counted(watchers, 'watcher') : ''}</span>
      {!isConnected(node) ? (
        <span class="state-unknown">not connected: what it serves is not known</span>
      ) : behindSince === undefined ? (
        <span>up to date</span>
      ) : (
        <span class="state-partly">
          behind for {duration(agentClock.value - Date.parse(behindSince))},{' '}
          {counted(Math.max(0, revision - node.revision), 'revision')}
        </span>
      )}
    </a>
  )
}
