export { Activity } from './activity.js'
export { type AgentApiOptions, agentApiHandler } from './handler.js'
export { type AgentSocket, agentSocketPath, askAgent, serveOnSocket } from './socket.js'
export { isHealthy, statusText } from './status-text.js'
