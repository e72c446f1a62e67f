// What needs Node. Everything else of this package runs in a browser too.
export { clientOf, HttpConnections, type HttpLimits, httpServerOptions } from './http-limits.js'
export { hostProblem, originProblem } from './http-origin.js'
export {
  checkServerName,
  isAboutCertificate,
  parseCertificates,
  parsePrivateKey,
  type TlsProblem,
  tlsProblemOf,
} from './tls.js'
