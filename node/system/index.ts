export { applyConntrack } from './conntrack.js'
export { EventRecorder } from './event-recorder.js'
export { applyOomScore } from './oom-score.js'
