import { endianness } from 'node:os'
import { MessageBuffer } from '@kpng/linux'
import { expect, test } from 'vitest'
import { type Operation, requestOf } from './ipvs-messages.js'
import type { VirtualServer } from './virtual-servers.js'

// The attributes as the kernel reads them (linux/ip_vs.h), on a machine with little-endian numbers.

const web: VirtualServer = {
  ...{ key: '10.96.0.1:80/tcp', family: 'IPv4', protocol: 'tcp', address: '10.96.0.1', port: 80, mark: 0 },
  ...{ scheduler: 'rr', persistenceSeconds: 0, destinations: new Map(), mayKeepClients: new Set<string>() },
}
const dns6: VirtualServer = {
  ...{
    ...web,
    family: 'IPv6',
    protocol: 'udp',
    address: 'fd00:96::1',
    port: 53,
    scheduler: 'sh',
    persistenceSeconds: 60,
  },
}
const marked: VirtualServer = { ...web, address: '', port: 0, mark: 0x4b000001 }
const pod = { ip: '10.244.1.5', port: 8080 }

function bytesOf(operation: Operation): { command: number; attributes: string } {
  const { command, write } = requestOf(operation)
  const buffer = new MessageBuffer(1)
  write?.(buffer)
  return { command, attributes: buffer.bytes.toString('hex') }
}

const zeros = (bytes: number) => '00'.repeat(bytes)
const webKey = `06000100020000000600020006000000140003000a600001${zeros(12)}0600040000500000`
const podKey = `140001000af40105${zeros(12)}060002001f9000000600 0b0002000000`.replace(' ', '')

test.each<[string, Operation, number, string]>([
  [
    'a new virtual server: key, scheduler, flags and their mask, timeout, netmask',
    { do: 'newService', server: web },
    1,
    `54000180${webKey}07000600727200000c00070000000000ffffffff080008000000000008000900ffffffff`,
  ],
  [
    'a persistent one of IPv6',
    { do: 'setService', server: dns6 },
    2,
    `54000180060001000a000000060002001100000014000300fd000096${zeros(11)}010600040000350000` +
      '0700060073680000' +
      '0c00070001000000ffffffff' +
      '080008003c000000' +
      '0800090080000000',
  ],
  [
    'one that is found by a mark',
    { do: 'deleteService', server: marked },
    3,
    '140001800600010002000000080005000100004b',
  ],
  [
    'a destination: masqueraded, its weight, no limits',
    { do: 'newDest', server: web, destination: pod, weight: 1 },
    5,
    `30000180${webKey}48000280${podKey}0800030000000000080004000100000008000500000000000800060000000000`,
  ],
  [
    'another weight',
    { do: 'setDest', server: web, destination: pod, weight: 0 },
    6,
    `30000180${webKey}48000280${podKey}0800030000000000080004000000000008000500000000000800060000000000`,
  ],
  ['a destination goes', { do: 'deleteDest', server: web, destination: pod }, 7, `30000180${webKey}28000280${podKey}`],
])('%s', (_name, operation, command, attributes) => {
  if (endianness() !== 'LE') return
  expect(bytesOf(operation)).toEqual({ command, attributes })
})
