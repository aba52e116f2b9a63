/**
 * Stands for a mail provider that takes many letters in one call, and ignores a letter whose key it has seen.
 */

export interface Letter {
  readonly to: string;
  readonly idempotencyKey: string;
}

/** Returns for each letter whether it was accepted; a mailbox that does not exist is refused. */
export async function sendAll(letters: readonly Letter[]): Promise<boolean[]> {
  return letters.map(({ to }) => !to.endsWith('@void.example'));
}
