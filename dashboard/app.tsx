import { allRows, shape } from './data/cluster.js'
import { connection } from './data/connection.js'
import { ChangesPage } from './pages/changes.js'
import { ConnectionsPage } from './pages/connections.js'
import { Header } from './pages/header.js'
import { Bands, Empty, Loading, NoAnswer, NotFound } from './pages/no-data.js'
import { NodesPage } from './pages/nodes.js'
import { Overview } from './pages/overview.js'
import { ServicePage } from './pages/service.js'
import { route } from './route.js'

export function App() {
  const at = connection.value
  return (
    <div class={`app at-${at.state}`}>
      <button type="button" class="skip" onClick={() => document.getElementById('search')?.focus()}>
        Skip to search
      </button>
      <Header />
      <Bands at={at} />
      {at.state === 'loading' ? (
        <Loading />
      ) : at.state === 'live' || at.state === 'lost' ? (
        <Page />
      ) : (
        <NoAnswer state={at.state} sentence={at.sentence} />
      )}
      <footer class="keys soft small" aria-hidden="true">
        <kbd>/</kbd> search <kbd>j</kbd>
        <kbd>k</kbd> move <kbd>Enter</kbd> open <kbd>Esc</kbd> back <kbd>g</kbd>
        <kbd>c</kbd> changes
      </footer>
    </div>
  )
}

function Page() {
  void shape.value
  const { page, rest } = route.value
  switch (page) {
    case '':
      return allRows().length === 0 ? <Empty /> : <Overview />
    case 'service':
      return <ServicePage key={rest.join('/')} name={rest.join('/')} />
    case 'changes':
      return <ChangesPage number={rest[0] === undefined ? undefined : Number(rest[0])} />
    case 'connections':
      return <ConnectionsPage />
    case 'nodes':
      return <NodesPage />
    default:
      return <NotFound page={page} />
  }
}
