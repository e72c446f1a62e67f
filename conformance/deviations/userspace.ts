import type { Deviations } from './deviation.js'

/** kpng's userspace backend: a process stands between client and endpoint. */
export const userspace: Deviations = []
