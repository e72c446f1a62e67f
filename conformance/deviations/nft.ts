import type { Deviations } from './deviation.js'

/** kpng's nftables backend follows kube-proxy's nftables mode in every cell. */
export const nft: Deviations = []
