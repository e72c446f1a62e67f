const nobody = 65534

/** Runs a test's body without the rights of root, which may read and write everything. */
export async function withoutRoot<T>(body: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return body()
  process.seteuid?.(nobody)
  try {
    return await body()
  } finally {
    process.seteuid?.(0)
  }
}
