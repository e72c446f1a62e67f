import { run } from '@kpng/client'

await run((items) => {
  for (const { service, endpoints } of items) {
    const ips = endpoints.flatMap(({ ips }) => [...(ips?.v4 ?? []), ...(ips?.v6 ?? [])])
    console.log(`${service.namespace}/${service.name} → ${ips.join(', ') || 'nobody'}`)
  }
})
