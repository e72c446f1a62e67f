/** The label with which a Node says in which zone it is. */
export const zoneLabel = 'topology.kubernetes.io/zone'
