import type { Family } from '@kpng/api'

/** kube-proxy's, unless the environment variable INTERFACE_TO_ADD_SERVICE_IP named another one. */
export const defaultInterface = 'vEthernet (HNS Internal NIC)'

// The interface is called "name" in netsh's ipv4 context and "interface" in its ipv6 one.
const context = { IPv4: 'ipv4', IPv6: 'ipv6' } as const
const interfaceWord = { IPv4: 'name', IPv6: 'interface' } as const

const change = (verb: 'add' | 'delete', family: Family, interfaceName: string) => [
  'interface',
  context[family],
  verb,
  'address',
  `${interfaceWord[family]}=${interfaceName}`,
]

// Without a mask netsh takes that of the address's class, and 64 bits in IPv6: the whole range would be looked for at this interface.
export const addArguments = (family: Family, interfaceName: string, ip: string): string[] => [
  ...change('add', family, interfaceName),
  ...(family === 'IPv4' ? [`address=${ip}`, 'mask=255.255.255.255'] : [`address=${ip}/128`]),
]

export const deleteArguments = (family: Family, interfaceName: string, ip: string): string[] => [
  ...change('delete', family, interfaceName),
  `address=${ip}`,
]

export const showArguments = (family: Family, interfaceName: string): string[] => [
  'interface',
  context[family],
  'show',
  'address',
  `${interfaceWord[family]}=${interfaceName}`,
]
