import type { Transition } from '../../job/transition.ts';
import type { PendingSettlement } from './settlement.ts';

const MAX_BATCH = 2_000;
const MAX_BATCH_CHARACTERS = 8 * 1024 * 1024;

/**
 * The next rows of one statement, each job once: its answer is told by its id, and a lost attempt may end
 * together with a newer one. And no more output than one parameter carries well.
 */
export function nextBatch(waiting: readonly PendingSettlement[]): {
  batch: PendingSettlement[];
  rest: PendingSettlement[];
} {
  const batch = new Map<number, PendingSettlement>();
  const again: PendingSettlement[] = [];
  let at = 0;
  for (let characters = 0; at < waiting.length && batch.size < MAX_BATCH; at++) {
    const next = waiting[at];
    if (next === undefined) break;
    characters += outputLength(next.transition);
    if (characters > MAX_BATCH_CHARACTERS && batch.size > 0) break;
    if (batch.has(next.id)) again.push(next);
    else batch.set(next.id, next);
  }
  return { batch: [...batch.values()], rest: [...again, ...waiting.slice(at)] };
}

function outputLength(transition: Transition): number {
  return transition.type === 'finish' ? (transition.output?.length ?? 0) : 0;
}
