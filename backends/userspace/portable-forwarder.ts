import type { Place } from './capture/capture.js'
import { type Forwarder, LocalForwarder } from './forwarder.js'
import type { Portal } from './portal.js'
import type { ProxySocket } from './proxy-socket.js'
import type { Surroundings } from './surroundings.js'
import type { ByteMover } from './tcp/byte-mover.js'
import { TcpProxySocket } from './tcp/proxy-socket.js'
import { UdpProxySocket } from './udp/proxy-socket.js'

/** Forwards in this thread, with the sockets of Node. */
export class PortableForwarder extends LocalForwarder implements Forwarder {
  readonly #byteMover: ByteMover

  constructor(surroundings: Surroundings, byteMover: ByteMover) {
    super(surroundings)
    this.#byteMover = byteMover
  }

  listen({ id, protocol }: Portal, place: Place): Promise<ProxySocket> {
    return this.listenWith(id, (entrance) =>
      protocol === 'tcp'
        ? TcpProxySocket.listen(entrance, place, this.#byteMover)
        : UdpProxySocket.listen(entrance, place),
    )
  }
}
