export {
  type AppliedValue,
  type ApplyConntrackOptions,
  applyConntrack,
  type ConntrackSettings,
  conntrackValues,
} from './conntrack.js'
export {
  type EventInit,
  EventRecorder,
  type EventRecorderOptions,
  type ObjectReference,
  type ServerFailure,
} from './event-recorder.js'
export { applyOomScore, type OomScoreOptions } from './oom-score.js'
export { restoreSysctls, type SysctlRecordOptions } from './sysctl-record.js'
