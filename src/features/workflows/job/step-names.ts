import { MAX_NAME_BYTES } from '../../../core/job/limits.ts';

/** The step that says that a job is being undone, and what the names of those that undo others begin with. */
export const UNDO = 'undo';
/** What the step that waits for a child has after the name of the one that has enqueued it. */
export const END = ': end';

/** What the step that makes a token has before the name of its signal. */
export const TOKEN = 'token: ';

/** The most bytes of the name of a step that is made of another name, which was checked. */
export const MAX_MADE_NAME_BYTES = MAX_NAME_BYTES + Math.max(`${UNDO}:`.length, END.length, TOKEN.length);

/** Whether a step is part of an undo; a job cannot go on from one. */
export function isUndo(name: string): boolean {
  return name === UNDO || name.startsWith(`${UNDO}:`);
}
