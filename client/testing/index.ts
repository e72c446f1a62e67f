export { FakeCore, type FakeCoreOptions } from './fake-core.js'
export { ManualClock } from './manual-clock.js'
export { endpoint, ips, item, type Scope, type TestNode, type TestService, tcp, udp } from './objects.js'
