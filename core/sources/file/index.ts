export { type WatchFileOptions, watchFile } from './watch-file.js'
