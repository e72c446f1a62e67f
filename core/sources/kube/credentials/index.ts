export {
  type ConnectionOptions,
  type KubeConnection,
  type KubeRequest,
  type KubeResponse,
  loadConnection,
} from './connection.js'
export { type FindOptions, podNamespace } from './find.js'
export { readBody } from './read-body.js'
export type { OnRequest, RequestReport } from './request-report.js'
