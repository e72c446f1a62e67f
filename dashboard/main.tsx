import { render } from 'preact'
import { App } from './app.js'
import { stayConnected } from './data/connection.js'
import { followShown } from './data/shown.js'
import { restoreTheme } from './draw/paint.js'
import { listenForKeys } from './keys.js'

restoreTheme()
followShown()
listenForKeys()
stayConnected()
render(<App />, document.getElementById('app') as HTMLElement)
