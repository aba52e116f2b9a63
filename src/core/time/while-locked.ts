/** A claim or a settlement locks rows for some milliseconds; these waits double, up to 0.3 seconds in all. */
const FIRST_WAIT_MS = 10;
const MAX_TRIES = 6;

/** Asks again for as long as the answer is that another transaction has locked the row. */
export async function whileLocked<T>(ask: () => Promise<T | 'locked'>): Promise<T | 'locked'> {
  for (let tries = 1, waitMs = FIRST_WAIT_MS; ; tries++, waitMs *= 2) {
    const answer = await ask();
    if (answer !== 'locked' || tries === MAX_TRIES) return answer;
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}
