export { startPlayground } from './start.js'
