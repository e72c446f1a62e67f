import type { Place } from './capture/capture.js'
import type { Entrance } from './entrance.js'
import { TcpProxySocket } from './tcp/proxy-socket.js'
import { UdpProxySocket } from './udp/proxy-socket.js'

/** The listening socket behind one portal. */
export interface ProxySocket {
  /** Where it listens, with the port that it got. */
  readonly place: Place
  /** Stops listening. TCP connections go on, UDP sessions end. */
  close(): void
}

export const openProxySocket = (entrance: Entrance, place: Place): Promise<ProxySocket> =>
  entrance.portal.protocol === 'tcp' ? TcpProxySocket.listen(entrance, place) : UdpProxySocket.listen(entrance, place)
