export { type Capability, checkNetworkRights, hasCapability, rightsAdvice } from './capabilities.js'
export { deleteFlows, type Flow, type FlowProtocol, type FlowSelection, listFlows } from './conntrack.js'
export { DummyInterface, removeDummyInterface } from './dummy-interface.js'
export { checkNeeds, linuxHost } from './host.js'
export {
  hasIpv6,
  type InterfaceAddress,
  interfaceAddresses,
  isLinkLocal,
  reachableAddresses,
} from './interfaces.js'
export { type Libc, loadLibc } from './libc.js'
export { lockName, type NameLock } from './name-lock.js'
export { type AttributeToWrite, MessageBuffer } from './netlink/buffer.js'
export {
  EPERM,
  errnoText,
  NETLINK_GENERIC,
  NETLINK_NETFILTER,
  NETLINK_ROUTE,
  NFPROTO_IPV4,
  NFPROTO_IPV6,
  NLA_F_NESTED,
  NLA_TYPE_MASK,
  NLM_F_ACK,
  NLM_F_APPEND,
  NLM_F_CREATE,
  NLM_F_DUMP,
} from './netlink/constants.js'
export { dump } from './netlink/dump.js'
export { GenericNetlink, type GenericRequest, type Refusal } from './netlink/generic.js'
export {
  type Acknowledgement,
  type Attribute,
  acknowledgementIn,
  attributesIn,
  attributesOf,
  type ByteOrder,
  findAttribute,
  hostOrder,
  type Message,
  textOf,
} from './netlink/messages.js'
export { AnswersLost, NetlinkSocket } from './netlink/socket.js'
export { type OpenFilesOptions, openFiles, openFilesLimit, watchOpenFiles } from './open-files.js'
export { deletePacketCounter, makePacketCounter, readPacketCounter } from './packet-counters.js'
export {
  isMissingProgram,
  outputOf,
  type ProgramOptions,
  type ProgramResult,
  runProgram,
} from './program.js'
export { releaseProgramPages } from './program-pages.js'
export { runtimeFolder, sharedFolder, whyUnsafe } from './runtime-folder.js'
export { type ApplyOptions, applySetting, type KernelSetting, type SettingOutcome, sysctlPath } from './sysctls.js'
