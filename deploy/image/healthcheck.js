// Asks kpng how it is, for Docker's HEALTHCHECK: 0 is well, 1 is not.
const url = process.env.KPNG_HEALTHZ ?? 'http://127.0.0.1:10256/healthz'

fetch(url, { signal: AbortSignal.timeout(2500) }).then(
  ({ ok, status }) => {
    if (!ok) console.error(`${url} answers ${status}`)
    process.exitCode = ok ? 0 : 1
  },
  (error) => {
    console.error(
      `${url} does not answer: ${error.cause?.message ?? error.message}. Is kpng told another --healthz-bind-address? Then set KPNG_HEALTHZ.`,
    )
    process.exitCode = 1
  },
)
