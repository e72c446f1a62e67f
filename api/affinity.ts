/** The timeout that the API server sets if ClientIP affinity has none: three hours. */
export const defaultAffinitySeconds = 10_800
