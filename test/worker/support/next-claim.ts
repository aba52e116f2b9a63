import type { ClaimAnswer, QueueClaims } from '../../../src/core/worker/claim/claims.ts';

/** What a worker asks before it claims; a test may change it. */
export interface TestDemand {
  size: number;
  readonly beginning: 0 | 1;
  readonly perGroup: undefined;
  ofKind(kind: string): number;
}

/** Use for so many jobs, of each kind. */
export function demandFor(size: number, beginning: 0 | 1 = 1): TestDemand {
  return {
    size,
    beginning,
    perGroup: undefined,
    ofKind() {
      return this.size;
    },
  };
}

/** Sends a claim of a queue that has use for jobs. */
export async function nextClaim(claims: QueueClaims): Promise<ClaimAnswer> {
  const answer = claims.next();
  if (answer === undefined) throw new Error('There is use for no job');
  return await answer;
}
