import { parseArgs } from 'node:util'
import { MockAgent } from './mock-agent.js'

// The page with a cluster that does not exist, to look at while working on it: node dashboard/testing/run.js mock --services 5000 --rate 9

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '5000' },
    rate: { type: 'string', default: '9' },
    backend: { type: 'string', default: 'nftables' },
    core: { type: 'boolean', default: false },
    port: { type: 'string', default: '0' },
  },
})
const agent = new MockAgent({
  services: Number(values.services),
  changesPerSecond: Number(values.rate),
  backend: values.backend,
  role: values.core ? 'core' : 'node',
  port: Number(values.port),
})
console.log(await agent.start())
