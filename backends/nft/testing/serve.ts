import type { Backend } from '@kpng/client'
import { change, endpoint, fullSync, ips } from '../../../dataplane/testing/objects.js'
import { addresses, services as labServices, labView } from './cases.js'

const services = 20
const random = (below: number) => Math.floor(Math.random() * below)

function otherService(index: number) {
  const endpoints = Array.from({ length: random(12) }, (_, at) => endpoint(`10.9.${index}.${at + random(50)}`))
  return { name: `other-${index}`, ips: { clusterIps: ips(`10.96.200.${index}`) }, endpoints }
}

/** The Service web with two of its three pods. Which two changes with the number. */
function webService(number: number) {
  const pods = (['podA1', 'podA2', 'podB1'] as const).filter((_, at) => at !== number % 3)
  const endpoints = pods.map((pod) => endpoint(addresses[pod].join(' '), { local: pod !== 'podB1' }))
  return { ...labServices.find(({ name }) => name === 'web'), name: 'web', endpoints }
}

/**
 * For a proxy as a process of its own, so that it can be killed: serves the lab's view, and then changes other services of it without
 * end. It prints `synced`, and the number of changes from time to time.
 * @param every after how many changes it prints
 * @param withWeb whether endpoints of the Service web come and go, too
 */
export async function serveAndChange(backend: Backend, every: number, withWeb = false): Promise<never> {
  const view = labView()
  await backend.setup({ requestFullSync: () => {} })
  await backend.sync(view, fullSync)
  process.stdout.write('synced\n')
  for (let changes = 1; ; changes++) {
    const index = random(services)
    await backend.sync(view, change(view, `other-${index}`, random(5) === 0 ? undefined : otherService(index)))
    if (withWeb) await backend.sync(view, change(view, 'web', webService(changes)))
    if (changes % every === 0) process.stdout.write(`${changes}\n`)
    if (changes % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
  }
}
