// kube-proxy's buckets. Dashboards compute quantiles from them, so they are the same to the last one.

const exponential = (start: number, factor: number, count: number): number[] =>
  Array.from({ length: count }, (_, index) => start * factor ** index)

const linear = (start: number, width: number, count: number): number[] =>
  Array.from({ length: count }, (_, index) => start + width * index)

/** 1 ms to 16 s. */
export const syncBuckets = exponential(0.001, 2, 15)

/** Up to 5 minutes. The bucket of 0 is there in kube-proxy too. */
export const programmingBuckets = [
  0,
  ...linear(0.25, 0.25, 2),
  ...linear(1, 1, 59),
  ...linear(60, 5, 12),
  ...linear(120, 30, 7),
]

/** client-go's, for requests to the API server. */
export const apiRequestBuckets = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60]
