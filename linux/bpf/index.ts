export { type CgroupTree, cgroupTree, isRootCgroup } from './cgroups.js'
export { BpfMap, type MapShape, socketStorageTypes } from './maps.js'
export { isBpffs, openPinned, pin } from './pins.js'
export {
  type AttachedProgram,
  attachedPrograms,
  BpfLink,
  type Hook,
  hooks,
  type LinkInfo,
  loadProgram,
  programId,
} from './programs.js'
export { BpfError, type BpfSyscalls, loadBpf } from './syscalls.js'
