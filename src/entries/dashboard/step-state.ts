/** What is known of a step, apart from its values. */
export interface StepFacts {
  readonly kind: string;
  readonly hasOutput: boolean;
  /** Whether its last try has failed. */
  readonly hasFailed: boolean;
  /** `null` while it waits, or is to be tried again. */
  readonly endedAt: Date | null;
}

/** What a step is at. `tone` is how that looks. */
export interface StepState {
  readonly text: string;
  readonly tone: 'good' | 'bad' | 'busy' | 'later' | 'plain';
}

/**
 * What a step is at, in words for people. A step of a job that has ended is at nothing any more.
 *
 * @param live whether its job is
 */
export function stepState({ kind, hasOutput, hasFailed, endedAt }: StepFacts, live: boolean): StepState {
  // Its error is why the others are undone.
  if (kind === 'undo') return { text: 'undoing began', tone: 'bad' };
  if (endedAt !== null) {
    if (hasFailed) return { text: 'failed for good', tone: 'bad' };
    if (kind === 'sleep') return { text: 'slept', tone: 'good' };
    if (kind === 'signal') {
      return hasOutput ? { text: 'received', tone: 'good' } : { text: 'timed out', tone: 'plain' };
    }
    return { text: 'done', tone: 'good' };
  }
  if (!live) return { text: 'left open', tone: 'plain' };
  if (hasFailed) return { text: 'to be tried again', tone: 'bad' };
  if (kind === 'sleep') return { text: 'sleeping', tone: 'later' };
  return kind === 'signal' || kind === 'wait' || kind === 'first'
    ? { text: 'waiting', tone: 'later' }
    : { text: 'open', tone: 'busy' };
}
