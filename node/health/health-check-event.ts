/** Something to be recorded on a Service, with kube-proxy's words. */
export interface HealthCheckEvent {
  readonly reason: 'FailedToStartServiceHealthcheck'
  readonly action: 'Listen'
  readonly namespace: string
  readonly name: string
  readonly note: string
}
