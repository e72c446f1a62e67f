import { expect, test } from 'vitest'
import { destinationsIn } from './listing.js'

test('destinations are found by their virtual server', async () => {
  const zeros = '0000:0000:0000:0000:0000'
  const text = `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
TCP  0A600001:0050 rr  
  -> 0AF40101:1F90      Masq    1      2          13        
  -> 0AF40102:1F90      Masq    0      0          0         
TCP  0A600002:0050 rr  
UDP  [fd00:0096:${zeros}:0001]:0035 sh persistent 10800000 00000080
  -> [fd00:0244:${zeros}:0007]:0035      Masq    1      0          0         
FWM  4B000001 rr  
  -> 0AF40101:1F90      Masq    1      0          0         
FWM  4B000001 rr persistent 10800000 00000080
  -> [fd00:0244:${zeros}:0007]:0035      Masq    1      0          0         
SCTP 0A600001:0050 lc  
  -> 0AF40103:0050      Masq    1      0          0         
`
  const found = await destinationsIn(text)
  expect(
    [...found].map(([key, destinations]) => [key, ...destinations.map((each) => Object.values(each).join(' '))]),
  ).toEqual([
    ['10.96.0.1:80/tcp', '10.244.1.1 8080 1 2 13', '10.244.1.2 8080 0 0 0'],
    ['[fd00:96::1]:53/udp', 'fd00:244::7 53 1 0 0'],
    ['IPv4 mark 0x4b000001', '10.244.1.1 8080 1 0 0'],
    ['IPv6 mark 0x4b000001', 'fd00:244::7 53 1 0 0'],
    ['10.96.0.1:80/sctp', '10.244.1.3 80 1 0 0'],
  ])
})
