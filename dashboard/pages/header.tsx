import { useState } from 'preact/hooks'
import { isSynced, status } from '../data/cluster.js'
import { connection, wallClock } from '../data/connection.js'
import { query } from '../data/shown.js'
import { noteTyping } from '../data/typing.js'
import { setTheme, type Theme, themeNow } from '../draw/paint.js'
import { ago } from '../format.js'
import { enterList } from '../parts/virtual-list.js'
import { goTo, nodeName, route } from '../route.js'

export function Header() {
  const { page } = route.value
  const now = status.value
  const isCore = now?.role === 'core'
  return (
    <header class="top">
      <a class="mark" href="#/" aria-label="kpng, all Services">
        <svg viewBox="0 0 16 16" width="20" height="20" aria-hidden="true">
          <path
            d="M1.5 8H7l6-5M7 8l6 5"
            stroke="currentColor"
            stroke-width="2.2"
            fill="none"
            stroke-linecap="round"
            stroke-linejoin="round"
          />
        </svg>
        <span>kpng</span>
      </a>
      <nav aria-label="Pages">
        <Tab href="#/" name="Services" isOn={page === '' || page === 'service'} />
        {isCore && nodeName === '' && <Tab href="#/nodes" name="Nodes" isOn={page === 'nodes'} />}
        <Tab href="#/changes" name="Changes" isOn={page === 'changes'} />
        {!isCore && <Tab href="#/connections" name="Connections" isOn={page === 'connections'} />}
      </nav>
      <Search />
      {now && (
        <span class="node soft">
          {nodeName === '' ? now.node : `${nodeName}, as ${now.node} sees it`} <span class="small">v{now.version}</span>
          {nodeName !== '' && (
            <>
              {' '}
              <a class="plain" href="?#/nodes">
                All nodes
              </a>
            </>
          )}
        </span>
      )}
      <Live />
      <ThemeButton />
    </header>
  )
}

function Tab({ href, name, isOn }: { readonly href: string; readonly name: string; readonly isOn: boolean }) {
  return (
    <a href={href} aria-current={isOn ? 'page' : undefined}>
      {name}
    </a>
  )
}

function Search() {
  return (
    <label class="search">
      <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
        <circle cx="7" cy="7" r="4.6" fill="none" stroke="currentColor" stroke-width="1.6" />
        <path d="M10.5 10.5 14 14" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" />
      </svg>
      <span class="sr">Search Services</span>
      <input
        id="search"
        type="search"
        spellcheck={false}
        autocomplete="off"
        placeholder="name, namespace, ip:port, refused, local …"
        value={query.value}
        onInput={({ currentTarget }) => {
          noteTyping()
          query.value = currentTarget.value
          if (route.peek().page !== '') goTo('#/')
        }}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown' || event.key === 'Enter') {
            event.preventDefault()
            enterList('services')
          } else if (event.key === 'Escape') {
            query.value = ''
            event.currentTarget.blur()
            event.stopPropagation()
          }
        }}
      />
      <kbd>
        <span aria-hidden="true">/</span>
      </kbd>
    </label>
  )
}

function Live() {
  const { state, since } = connection.value
  const now = status.value
  const [className, text] = {
    live: !isSynced(now) ? ['waiting', 'not synced yet'] : now?.source?.stale ? ['gone', 'stale'] : ['', 'live'],
    loading: ['waiting', 'connecting'],
    lost: ['gone', `lost ${ago(wallClock.value - since)}`],
    unreachable: ['gone', 'no answer'],
    denied: ['gone', 'no permission'],
    older: ['gone', 'older agent'],
  }[state] as [string, string]
  return (
    <span class={`live ${className}`}>
      <i aria-hidden="true" />
      <span class="live-word">{text}</span>
    </span>
  )
}

const nextTheme: Readonly<Record<Theme, Theme>> = { auto: 'light', light: 'dark', dark: 'auto' }

function ThemeButton() {
  const [theme, show] = useState(themeNow())
  const next = nextTheme[theme]
  return (
    <button
      type="button"
      class="icon"
      aria-label={`Theme: ${theme}. Change to ${next}`}
      title={`Theme: ${theme}`}
      onClick={() => {
        setTheme(next)
        show(next)
      }}
    >
      <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
        <circle
          cx="8"
          cy="8"
          r="6"
          fill={theme === 'dark' ? 'currentColor' : 'none'}
          stroke="currentColor"
          stroke-width="1.5"
        />
        {theme === 'auto' && <path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor" />}
      </svg>
    </button>
  )
}
