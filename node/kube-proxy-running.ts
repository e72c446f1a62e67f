import { readFile, readlink } from 'node:fs/promises'
import { readPorts, readProcesses } from './doctor/read-proxies.js'

/** The first PID namespace of the kernel, in which every process is visible: PROC_PID_INIT_INO of the kernel's sources. */
const allProcesses = 'pid:[4026531836]'

/** Why kube-proxy runs in this network namespace, or may run there, as a sentence. Undefined: it certainly does not. */
export async function whyKubeProxyMayRun(): Promise<string | undefined> {
  const processes = await readProcesses().catch(() => [])
  const running = processes.filter(({ program }) => program === 'kube-proxy').map(({ pid }) => `process ${pid}`)
  if (running.length > 0) return `kube-proxy runs on this node (${running.join(', ')}).`
  const port = (await readPorts()).find(({ owner }) => owner === 'kube-proxy')
  if (port) return `kube-proxy runs on this node (port ${port.port} answers).`
  if (await seesAllProcesses()) return undefined
  return 'This process cannot see all processes of the node, so kube-proxy may be running. In a pod, set hostPID: true.'
}

/** A container without the node's PID namespace does not see kube-proxy, nor does anybody if /proc is mounted with hidepid. */
async function seesAllProcesses(): Promise<boolean> {
  try {
    await readFile('/proc/1/cmdline')
    return (await readlink('/proc/self/ns/pid')) === allProcesses
  } catch {
    return false
  }
}
