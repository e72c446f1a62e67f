import type { Deviations } from './deviation.js'

/** kpng's ipvs backend. */
export const ipvs: Deviations = [
  {
    cells: ['node-port/second-address*'],
    reason: "ipvs mode serves node ports at all of the node's addresses unless nodePortAddresses says otherwise",
    instead: { outcome: 'reached', servers: ['a1', 'b1'], source: 'node', hits: 'some' },
  },
]
