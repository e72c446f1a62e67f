import { whySkipped } from '@kpng/linux/testing'

export { enterNamespace, enterNewNamespace } from '@kpng/linux/testing'

/** Why tests on the kernel cannot run here; undefined if they can. */
export const whyNoKernel = (): string | undefined => whySkipped('the nft backend on a real kernel', 'nft')
