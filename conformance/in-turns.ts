/** Runs tasks, a few at a time. With thousands of sockets at once a busy machine would look like one that drops packets. */
export async function inTurns<T>(tasks: readonly (() => Promise<T>)[], atATime: number): Promise<T[]> {
  const results: T[] = []
  let next = 0
  const worker = async () => {
    for (let index = next++; index < tasks.length; index = next++) {
      results[index] = await (tasks[index] as () => Promise<T>)()
    }
  }
  await Promise.all(Array.from({ length: Math.min(atATime, tasks.length) }, worker))
  return results
}
