/** What the API server fills in where ClientIP affinity comes without a timeout: three hours (checklist 38). */
export const defaultAffinitySeconds = 10_800
