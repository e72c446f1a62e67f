export { Direction } from './direction.js'
export {
  EPOLLERR,
  EPOLLHUP,
  EPOLLIN,
  EPOLLOUT,
  EPOLLRDHUP,
  type EventHandler,
  EventLoop,
  Wake,
} from './event-loop.js'
export { Pipes } from './pipes.js'
export {
  connectTcp,
  decodeAddress,
  errorOf,
  keepClientsTogether,
  listenTcp,
  localAddress,
  remoteAddress,
  resetAndClose,
  type SocketAddress,
  systemError,
} from './sockets.js'
export { loadTcp, SOCK_CLOEXEC, SOCK_NONBLOCK, type TcpSyscalls } from './syscalls.js'
