export type { HealthCheckEvent } from './health-check-event.js'
export { HealthCheckNodePorts, type HealthCheckNodePortsOptions } from './health-check-node-ports.js'
export { type HealthHandlerOptions, healthHandler } from './health-server.js'
export { type HealthStatus, ProxyHealth, type ProxyHealthOptions } from './proxy-health.js'
