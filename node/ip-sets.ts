import type { localv1 } from '@kpng/api'
import type { IPFamily } from './config/cidr.js'

/** The addresses of one family in a set that may not be there. */
export const ipsOf = (set: localv1.IPSet | undefined, family: IPFamily): readonly string[] =>
  (family === 'IPv4' ? set?.v4 : set?.v6) ?? []
