import { status } from '../data/cluster.js'
import { Copy } from '../parts/copy.js'

/** In a playground: what to try in a terminal, with the names of what is there. */
export function Hints() {
  const hints = status.value?.hints ?? []
  if (hints.length === 0) return null
  return (
    <section class="panel hints" aria-label="Try it in a terminal">
      <header class="bar">
        <h2>Try it in a terminal</h2>
        <span class="soft">this page follows within a second</span>
      </header>
      <ul>
        {hints.map(({ command, effect }) => (
          <li key={command}>
            <Copy text={command} />
            <span class="soft">{effect}</span>
          </li>
        ))}
      </ul>
    </section>
  )
}
