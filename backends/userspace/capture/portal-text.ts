/**
 * A name as it may stand in a rule's comment. Names come from the cluster and are DNS labels there, but a file can hold
 * anything: nothing but these characters may reach the text that nft and iptables read.
 */
export const commentOf = (servicePort: string, maxLength = 120): string =>
  servicePort.replace(/[^A-Za-z0-9_./:-]/g, '_').slice(0, maxLength)
