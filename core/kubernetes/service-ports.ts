import { isPort, localv1 } from '@kpng/api'
import { type Fields, fieldsOf, listOf, type Report, shown, textOf } from './fields.js'

const protocols = new Map<unknown, localv1.Protocol>([
  ['TCP', localv1.Protocol.TCP],
  ['UDP', localv1.Protocol.UDP],
  ['SCTP', localv1.Protocol.SCTP],
])

/** The protocol of that name; a missing one is TCP, as the API server fills it in. Undefined if there is no such protocol. */
export const protocolOf = (name: unknown): localv1.Protocol | undefined => protocols.get(name ?? 'TCP')

/** The ports of a Service. Bad ones are reported and left out; the others work (checklist 11, 18, 19). */
export function portsOf(spec: Fields, report: Report): localv1.PortMapping[] {
  const ports: localv1.PortMapping[] = []
  const names = new Set<string>()
  const numbers = new Set<string>()
  for (const [index, item] of listOf(spec.ports, report, 'spec', 'ports').entries()) {
    const where = `spec.ports[${index}]`
    const port = portOf(fieldsOf(item, report, 'spec', 'ports', index), where, report)
    if (!port) continue
    // Endpoints are found by the port's name, so two ports of one name could not be told apart.
    if (names.has(port.name)) {
      report(`${where} has the name ${shown(port.name)} of an earlier port. The port is left out.`)
      continue
    }
    const number = `${port.protocol}/${port.port}`
    if (numbers.has(number)) {
      report(`${where} is port ${port.port} of the same protocol as an earlier one. The port is left out.`)
      continue
    }
    names.add(port.name)
    numbers.add(number)
    ports.push(port)
  }
  return ports
}

function portOf(fields: Fields, where: string, report: Report): localv1.PortMapping | undefined {
  const { port, nodePort = 0, targetPort } = fields
  if (!isPort(port)) {
    report(`${where}.port is ${shown(port)}; a port is 1 to 65535. The port is left out.`)
    return undefined
  }
  const protocol = protocolOf(fields.protocol)
  if (protocol === undefined) {
    report(`${where}.protocol is ${shown(fields.protocol)}; TCP, UDP or SCTP was expected. The port is left out.`)
    return undefined
  }
  return {
    $typeName: 'localv1.PortMapping',
    name: textOf(fields.name, report, `${where}.name`),
    protocol,
    port,
    nodePort: nodePortOf(nodePort, where, report),
    ...targetPortOf(targetPort, port, where, report),
  }
}

function nodePortOf(nodePort: unknown, where: string, report: Report): number {
  if (nodePort === null || nodePort === 0) return 0
  if (isPort(nodePort)) return nodePort
  report(`${where}.nodePort is ${shown(nodePort)}; a port is 1 to 65535. The port has no node port.`)
  return 0
}

/** A number or a name; missing, 0 and empty are the port itself, as the API server fills it in. */
function targetPortOf(
  target: unknown,
  port: number,
  where: string,
  report: Report,
): Pick<localv1.PortMapping, 'targetPort' | 'targetPortName'> {
  const number = (targetPort: number) => ({ targetPort, targetPortName: '' })
  if (target === undefined || target === null || target === 0 || target === '') return number(port)
  if (isPort(target)) return number(target)
  if (typeof target === 'string') return { targetPort: 0, targetPortName: target }
  report(`${where}.targetPort is ${shown(target)}; a port (1 to 65535) or its name was expected. ${port} is used.`)
  return number(port)
}
