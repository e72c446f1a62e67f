export { type WriteStateFileOptions, writeStateFile } from './write-state-file.js'
