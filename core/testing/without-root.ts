const nobody = 65534

/** Runs a test's body without the rights of root, which may read and write everything. */
export async function withoutRoot(body: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0) return body()
  process.seteuid?.(nobody)
  try {
    await body()
  } finally {
    process.seteuid?.(0)
  }
}
