/** The label of a Node with the name of its zone. */
export const zoneLabel = 'topology.kubernetes.io/zone'
