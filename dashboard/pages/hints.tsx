import { useEffect, useState } from 'preact/hooks'
import { status } from '../data/cluster.js'
import { recall, remember } from '../data/storage.js'
import { Copy } from '../parts/copy.js'

/** In a playground: what to try in a terminal, with the names of what is there. Open at the first visit, and folded away at the next. */
export function Hints() {
  const [isOpen] = useState(() => recall('hints') === undefined)
  useEffect(() => remember('hints', 'seen'), [])
  const hints = status.value?.hints ?? []
  if (hints.length === 0) return null
  return (
    <details class="panel hints" open={isOpen}>
      <summary class="bar">
        <h2>Try it in a terminal</h2>
        <span class="soft">this page follows within a second</span>
      </summary>
      <ul>
        {hints.map(({ command, effect }) => (
          <li key={command}>
            <Copy text={command} />
            <span class="soft">{effect}</span>
          </li>
        ))}
      </ul>
    </details>
  )
}
