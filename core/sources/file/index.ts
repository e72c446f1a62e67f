export { type WatchFileOptions, watchFile } from './watch.js'
