export { StateCache, type StateCacheOptions } from './state-cache.js'
