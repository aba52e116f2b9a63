import type { Queue } from '../../index.ts';
import { shown } from '../../internal.ts';

/** For callers without TypeScript. @throws TypeError unless `createQueue` made it */
export function checkQueue(caller: string, queue: Queue): void {
  if (typeof queue?.tables === 'object') return;
  throw new TypeError(`${caller}: queue must be what createQueue() returns; got ${shown(queue)}`);
}
