import { type Audience, type Frontend, frontendId } from '@kpng/dataplane'

/** A frontend that a process can serve. */
export interface Portal extends Frontend {
  readonly protocol: 'tcp' | 'udp'
}

export const isPortal = (frontend: Frontend): frontend is Portal =>
  frontend.protocol === 'tcp' || frontend.protocol === 'udp'

/** `namespace/name:port`, or `namespace/name` if the port has no name. */
export const servicePortName = ({ service, portName }: Pick<Frontend, 'service' | 'portName'>): string =>
  portName === '' ? service : `${service}:${portName}`

/** What happens to a client's new connection. `drop`: no endpoint here. `refuse`: no endpoint anywhere. */
export type Fate = 'forward' | 'refuse' | 'drop'

export const fateOf = ({ endpoints, otherwise }: Audience): Fate => (endpoints.length > 0 ? 'forward' : otherwise)

/** Whether anybody is served. */
export const isServed = ({ inside, outside }: Portal): boolean =>
  inside.endpoints.length > 0 || outside.endpoints.length > 0

/** For messages. */
export const describePortal = (portal: Portal): { servicePort: string; portal: string } => ({
  servicePort: servicePortName(portal),
  portal: frontendId(portal),
})
