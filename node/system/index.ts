export { applyConntrack } from './conntrack.js'
export { EventRecorder } from './event-recorder.js'
export { applyOomScore, type OomScoreOptions } from './oom-score.js'
export { rememberChanges, restoreSysctls, type SysctlRecordOptions } from './sysctl-record.js'
